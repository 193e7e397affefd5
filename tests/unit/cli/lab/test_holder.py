"""The process that a lab belongs to, as far as it goes without namespaces."""

import signal
from types import SimpleNamespace

import pytest

from husk.cli.lab import holder, wires
from husk.cli.lab.layout import Host, Lab
from husk.kernel import apart


def test_the_daemon_of_a_host_has_all_to_itself(lab):
    words = holder.command(lab, lab.hosts[1])
    assert words[3:6] == ["serve", "-H", f"unix://{lab.run}/host2.sock"]
    assert words[words.index("--data-root") + 1] == str(lab.data / "host2")


def test_it_tells_of_daemons_that_end_and_starts_those_that_are_wanted(lab, monkeypatch, capfd):

    class Switch:
        def plug(self, port: str, namespace: int, name: str, addresses: object) -> None:
            plugged.append((port, name))

    plugged: list[tuple[str, str]] = []
    started = iter((11, 12))
    ended = iter([(11, 3 << 8), (99, 0), (12, 3 << 8)])

    def wait() -> tuple[int, int]:
        for found in ended:
            return found
        raise ChildProcessError

    def sleep(seconds: float) -> None:
        raise InterruptedError  # only its end ends it

    monkeypatch.setattr(apart, "keep_mounts_apart", lambda: None)
    monkeypatch.setattr(wires, "Switch", Switch)
    monkeypatch.setattr(wires, "new_namespace", lambda: -1)

    def start(lab: Lab, host: Host, namespace: int) -> SimpleNamespace:
        return SimpleNamespace(pid=next(started))

    monkeypatch.setattr(holder, "start", start)
    monkeypatch.setattr("os.wait", wait)
    monkeypatch.setattr("time.sleep", sleep)
    lab.run.mkdir()
    before = signal.getsignal(signal.SIGHUP)
    try:
        with pytest.raises(InterruptedError):
            holder.hold(lab)
        # Somebody wants one of them again.
        started = iter((13,))
        lab.wish(lab.hosts[1]).touch()
        signal.raise_signal(signal.SIGHUP)
        assert next(started, None) is None and not lab.wish(lab.hosts[1]).exists()
    finally:
        signal.signal(signal.SIGHUP, before)
    assert plugged == [("machine", "lab"), ("host1", "eth0"), ("host2", "eth0")]
    assert sorted(capfd.readouterr().out.splitlines()) == [f"the daemon of host{n} has ended with 3" for n in (1, 2)]


def test_what_it_is_started_with(monkeypatch):
    monkeypatch.setattr(apart, "unshare", lambda kinds: None)
    monkeypatch.setattr("os.fork", lambda: 0)
    held: list[object] = []
    monkeypatch.setattr(holder, "hold", held.append)
    holder.main(["--lab=/run/x", "x", "2", "10.99.0.0/24"])
    [lab] = held
    assert (lab.name, lab.size) == ("x", 2)  # type: ignore[attr-defined]
    with pytest.raises(ValueError):
        holder.main(["x"])
