"""A program is held until its terminal has a size, and nobody is held or traced afterwards."""

import array
import asyncio
import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from husk.kernel import exec_hold
from husk.kernel.exec_hold import held_until_sized
from tests.support.waiting import until_async

pytestmark = pytest.mark.skipif(not exec_hold.may_trace_everybody(), reason="it takes the right to trace everybody")

# As a monitor and its runtime: the child waits for a word, then enters other mounts and executes a program there.
_RUNTIME = "(read word <&3; exec 3<&-; exec unshare --mount {python} -c '{program}') <&0 & wait $!"
_PROGRAM = "import os; os.write(1, repr(tuple(os.get_terminal_size(0))).encode())"


class Family:
    """A parent whose child is about to execute a program at a terminal that has no size yet."""

    def __init__(self, program: str = _PROGRAM) -> None:
        self.master, slave = os.openpty()
        self._told, self._word = os.pipe()
        script = _RUNTIME.format(python=sys.executable, program=program).replace("word <&3", f"word <&{self._told}")
        script = script.replace("exec 3<&-", f"exec {self._told}<&-")
        self.parent = subprocess.Popen(
            ["bash", "-c", script], stdin=slave, stdout=subprocess.PIPE, pass_fds=[self._told], start_new_session=True
        )
        os.close(slave)

    def go(self) -> None:
        os.write(self._word, b"go\n")

    def size(self) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, array.array("H", [12, 34, 0, 0]))

    def children(self) -> list[int]:
        text = Path(f"/proc/{self.parent.pid}/task/{self.parent.pid}/children").read_text()
        return [int(pid) for pid in text.split()]

    async def child(self) -> int:
        await until_async(lambda: bool(self.children()), "the child is there")
        return self.children()[0]

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.parent.pid, signal.SIGKILL)
        assert self.parent.stdout is not None
        self.parent.stdout.close()
        self.parent.wait()
        for fd in (self.master, self._told, self._word):
            os.close(fd)


@pytest.fixture
def family() -> Iterator[Family]:
    made = Family()
    yield made
    made.close()


def told(pid: int, field: str) -> str:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith(f"{field}:"))


async def output(family: Family) -> bytes:
    return (await asyncio.to_thread(family.parent.communicate))[0]


async def test_it_waits_for_its_size(family: Family) -> None:
    child = await family.child()
    async with held_until_sized(family.parent.pid):
        family.go()
        await until_async(lambda: exec_hold.mounts_of(child) != exec_hold.mounts_of(os.getpid()), "it is inside")
        await until_async(lambda: told(child, "State") == "t", "it is held")
        family.size()
    assert await output(family) == b"(34, 12)"


async def test_it_waits_no_longer_than_it_should(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exec_hold, "_PATIENCE", 0.1)
    await family.child()
    async with held_until_sized(family.parent.pid):
        family.go()
        assert await output(family) == b"(0, 0)"


async def test_nobody_is_traced_when_it_is_over(family: Family) -> None:
    child = await family.child()
    async with held_until_sized(family.parent.pid):
        assert told(child, "TracerPid") != "0"
    assert told(child, "TracerPid") == "0"
    family.size()
    family.go()
    assert await output(family) == b"(34, 12)"


async def test_one_that_is_killed_while_it_is_held_is_gone(family: Family) -> None:
    child = await family.child()
    async with held_until_sized(family.parent.pid):
        family.go()
        await until_async(lambda: exec_hold.mounts_of(child) != exec_hold.mounts_of(os.getpid()), "it is inside")
        os.kill(child, signal.SIGKILL)
    assert await output(family) == b""


async def test_its_signals_reach_it_meanwhile(family: Family) -> None:
    child = await family.child()
    async with held_until_sized(family.parent.pid):
        os.kill(child, signal.SIGTERM)
        assert await output(family) == b""


async def test_without_the_right_to_it_nothing_is_held(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exec_hold, "may_trace_everybody", lambda: False)
    child = await family.child()
    async with held_until_sized(family.parent.pid):
        assert told(child, "TracerPid") == "0"
    async with held_until_sized(2**22 + 1):
        pass
