"""The process that a lab belongs to, as far as it goes without namespaces."""

import errno
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from husk.cli.lab import holder
from husk.cli.lab.layout import Lab, LabHost


def test_the_daemon_of_a_host_has_all_to_itself(lab: Lab) -> None:
    words = holder.command(lab, lab.hosts[1])
    assert words[3:6] == ["serve", "-H", f"unix://{lab.run}/host2.sock"]
    assert words[words.index("--data-root") + 1] == str(lab.data / "host2")


@pytest.fixture
def signals() -> Iterator[None]:
    """Those of this process are as before."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


class QuietSystem(holder.HolderSystem):
    """Things that are started and end, instead of processes; wires that nobody has made."""

    def __init__(self, turns: Sequence[Callable[[], object]] = ()) -> None:
        self.started: list[str] = []
        self.ended: list[tuple[int, int]] = []
        self.plugged: list[tuple[str, str]] = []
        self.failing = ""
        self._turns = iter(turns)

    def keep_mounts_apart(self) -> None:
        pass

    def switch(self) -> Any:
        return self

    def plug(self, port: str, namespace: int, name: str, addresses: object) -> None:
        self.plugged.append((port, name))

    def new_namespace(self) -> int:
        return -1

    def await_news(self) -> None:
        if (turn := next(self._turns, None)) is None:
            raise InterruptedError  # only its end ends it
        turn()

    def next_end(self) -> tuple[int, int]:
        return self.ended.pop(0) if self.ended else (0, 0)

    def start(self, lab: Lab, host: LabHost, namespace: int) -> Any:
        if host.name == self.failing:
            raise OSError(errno.ENOSPC, "no room")
        self.started.append(host.name)
        return SimpleNamespace(pid=10 + len(self.started), returncode=None)


@pytest.fixture
def there(lab: Lab) -> Lab:
    """A lab that has a directory."""
    lab.run.mkdir(parents=True)
    return lab


def test_it_tells_of_daemons_that_end_and_starts_those_that_are_wanted(
    there: Lab, capfd: pytest.CaptureFixture[str], signals: None
) -> None:
    def first_ends() -> None:
        system.ended = [(11, 3 << 8), (99, 0)]

    def second_ends() -> None:
        assert system.started == ["host1", "host2"]
        system.ended = [(12, 3 << 8)]

    # Wanted again while it still runs: a wish that is seen when it has ended.
    system = QuietSystem([first_ends, there.wish(there.hosts[1]).touch, second_ends])
    with pytest.raises(InterruptedError):
        holder.hold(there, system)
    assert set(holder.NEWS) <= signal.pthread_sigmask(signal.SIG_BLOCK, []), "nothing interrupts it"
    assert system.started == ["host1", "host2", "host2"]
    assert not there.wish(there.hosts[1]).exists()
    assert system.plugged == [("machine", "lab"), ("host1", "eth0"), ("host2", "eth0")]
    assert capfd.readouterr().out.splitlines() == [f"the daemon of host{n} has ended with 3" for n in (1, 2)]


def test_a_host_whose_daemon_cannot_be_started_is_alone_with_it(there: Lab, capfd: pytest.CaptureFixture[str]) -> None:
    for host in there.hosts:
        there.wish(host).touch()
    system = QuietSystem()
    system.failing = "host1"
    daemons: holder.Daemons = {}
    holder.start_wanted(there, dict.fromkeys(there.hosts, -1), daemons, system)
    assert [host.name for host, _ in daemons.values()] == ["host2"]
    assert holder.ended(there.hosts[0]) in (said := capfd.readouterr().out) and "no room" in said


def test_the_end_of_all_children_is_no_error() -> None:
    """A process that has none."""
    command = "from husk.cli.lab import holder; holder.reap({}, holder.HolderSystem())"
    subprocess.run([sys.executable, "-c", command], check=True)


def test_what_is_started_hears_signals_again(there: Lab, signals: None) -> None:
    """Its daemon is told by SIGHUP to read its settings again."""
    log = there.run / "host1.log"
    signal.pthread_sigmask(signal.SIG_BLOCK, holder.NEWS)
    assert holder.spawn(log, ["cat", "/proc/self/status"], lambda: None).wait(30) == 0
    [blocked] = [line for line in log.read_text().splitlines() if line.startswith("SigBlk")]
    assert int(blocked.split()[1], 16) & sum(1 << number - 1 for number in holder.NEWS) == 0


def test_what_it_is_started_with() -> None:
    lab = holder.told(["--lab=/run/x", "x", "2", "10.99.0.0/24"])
    assert (lab.name, lab.size, str(lab.subnet)) == ("x", 2, "10.99.0.0/24")
    with pytest.raises(ValueError):
        holder.told(["x"])
