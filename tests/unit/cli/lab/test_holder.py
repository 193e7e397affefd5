"""The process that a lab belongs to, as far as it goes without namespaces."""

import errno
import os
import signal
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from husk.cli.lab import holder, wires
from husk.cli.lab.layout import Lab, LabHost
from husk.kernel import apart


def test_the_daemon_of_a_host_has_all_to_itself(lab):
    words = holder.command(lab, lab.hosts[1])
    assert words[3:6] == ["serve", "-H", f"unix://{lab.run}/host2.sock"]
    assert words[words.index("--data-root") + 1] == str(lab.data / "host2")


@pytest.fixture
def signals() -> Iterator[None]:
    """Those of this process are as before."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Children:
    """Things that are started and end, instead of processes."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.ended: list[tuple[int, int]] = []
        self.failing = ""

    def start(self, lab: Lab, host: LabHost, namespace: int) -> SimpleNamespace:
        if host.name == self.failing:
            raise OSError(errno.ENOSPC, "no room")
        self.started.append(host.name)
        return SimpleNamespace(pid=10 + len(self.started), returncode=None)

    def waitpid(self, pid: int, options: int) -> tuple[int, int]:
        assert (pid, options) == (-1, os.WNOHANG)
        return self.ended.pop(0) if self.ended else (0, 0)


@pytest.fixture
def children(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Children:
    made = Children()
    monkeypatch.setattr(holder, "start", made.start)
    monkeypatch.setattr("os.waitpid", made.waitpid)
    lab.run.mkdir(parents=True)
    return made


def test_it_tells_of_daemons_that_end_and_starts_those_that_are_wanted(lab, children, monkeypatch, capfd, signals):

    class Switch:
        def plug(self, port: str, namespace: int, name: str, addresses: object) -> None:
            plugged.append((port, name))

    plugged: list[tuple[str, str]] = []
    turns = iter(range(100))

    def sigwait(awaited: object) -> None:
        turn = next(turns)
        if turn == 0:
            children.ended = [(11, 3 << 8), (99, 0)]
        elif turn == 1:
            # Wanted again while it still runs: a wish that is seen when it has ended.
            lab.wish(lab.hosts[1]).touch()
        elif turn == 2:
            assert children.started == ["host1", "host2"]
            children.ended = [(12, 3 << 8)]
        else:
            raise InterruptedError  # only its end ends it

    monkeypatch.setattr(apart, "keep_mounts_apart", lambda: None)
    monkeypatch.setattr(wires, "Switch", Switch)
    monkeypatch.setattr(wires, "new_namespace", lambda: -1)
    monkeypatch.setattr("signal.sigwait", sigwait)
    with pytest.raises(InterruptedError):
        holder.hold(lab)
    assert set(holder.NEWS) <= signal.pthread_sigmask(signal.SIG_BLOCK, []), "nothing interrupts it"
    assert children.started == ["host1", "host2", "host2"]
    assert not lab.wish(lab.hosts[1]).exists()
    assert plugged == [("machine", "lab"), ("host1", "eth0"), ("host2", "eth0")]
    assert capfd.readouterr().out.splitlines() == [f"the daemon of host{n} has ended with 3" for n in (1, 2)]


def test_a_host_whose_daemon_cannot_be_started_is_alone_with_it(lab, children, capfd):
    for host in lab.hosts:
        lab.wish(host).touch()
    children.failing = "host1"
    daemons: holder.Daemons = {}
    holder.start_wanted(lab, dict.fromkeys(lab.hosts, -1), daemons)
    assert [host.name for host, _ in daemons.values()] == ["host2"]
    assert holder.ended(lab.hosts[0]) in (said := capfd.readouterr().out) and "no room" in said


def test_the_end_of_all_children_is_no_error(monkeypatch):
    def waitpid(*_: int) -> tuple[int, int]:
        raise ChildProcessError

    monkeypatch.setattr("os.waitpid", waitpid)
    holder.reap({})


def test_what_is_started_hears_signals_again(lab, monkeypatch, signals):
    """Its daemon is told by SIGHUP to read its settings again."""
    monkeypatch.setattr(holder, "command", lambda lab, host: ["cat", "/proc/self/status"])
    monkeypatch.setattr(apart, "enter_network", lambda namespace: None)
    monkeypatch.setattr(apart, "unshare", lambda kinds: None)
    monkeypatch.setattr("socket.sethostname", lambda name: None)
    lab.run.mkdir(parents=True)
    signal.pthread_sigmask(signal.SIG_BLOCK, holder.NEWS)
    assert holder.start(lab, lab.hosts[0], -1).wait(30) == 0
    [blocked] = [line for line in (lab.run / "host1.log").read_text().splitlines() if line.startswith("SigBlk")]
    assert int(blocked.split()[1], 16) & sum(1 << number - 1 for number in holder.NEWS) == 0


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
