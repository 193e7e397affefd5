import asyncio
import os
import pty
import signal
import termios
from collections.abc import Iterator
from typing import Any

import pytest

from husk.cli.containers.terminal import TerminalTalk, check_terminal, forwarded, raw_terminal, unless_left, window


class Console:
    """Writes what it is told until it is closed."""

    def __init__(self) -> None:
        self.pieces: asyncio.Queue = asyncio.Queue()
        self.heard: list = []

    async def __aiter__(self):
        while (piece := await self.pieces.get()) is not None:
            yield piece

    async def write(self, data):
        self.heard.append(data)

    async def write_eof(self):
        self.heard.append("end")
        self.pieces.put_nowait(None)

    async def resize(self, height, width):
        self.heard.append((height, width))


@pytest.fixture
def keyboard() -> Iterator[tuple[int, int]]:
    """Something to read instead of our stdin, and its other end."""
    reader, writer = os.pipe()
    yield reader, writer
    os.close(reader)


async def test_output_goes_on_until_its_end(capfd):
    console: Any = Console()
    for piece in (("stdout", b"out"), ("stderr", b"err"), None):
        console.pieces.put_nowait(piece)
    assert await TerminalTalk(console, stdin=False, tty=False, keys=b"").hold() is False
    assert capfd.readouterr() == ("out", "err")


async def test_input_and_its_end(keyboard):
    console: Any = Console()
    source, typing = keyboard
    os.write(typing, b"typed")
    os.close(typing)
    assert await TerminalTalk(console, stdin=True, tty=False, keys=b"\x10\x11", source=source).hold() is False
    assert console.heard == [b"typed", "end"]


async def test_keys_that_detach(keyboard):
    console: Any = Console()
    source, typing = keyboard
    os.write(typing, b"x\x10\x11")
    assert await TerminalTalk(console, stdin=True, tty=True, keys=b"\x10\x11", source=source).hold() is True
    assert console.heard == [b"x"]
    os.close(typing)


async def test_signals_are_forwarded(capfd):
    got: asyncio.Queue = asyncio.Queue()
    with forwarded(got.put):
        os.kill(os.getpid(), signal.SIGHUP)
        assert await got.get() == "HUP"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_who_leaves_ends_his_own_side(number):
    async def endless():
        os.kill(os.getpid(), number)
        await asyncio.Event().wait()

    async def short():
        return 3

    assert await unless_left(endless()) is None
    assert await unless_left(short()) == 3


async def test_work_that_is_cancelled_by_others_is_not_left():
    async def cut_off():
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await unless_left(cut_off())


def test_a_raw_terminal_is_as_before_afterwards():
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    with raw_terminal(slave):
        assert not termios.tcgetattr(slave)[3] & termios.ECHO
    assert termios.tcgetattr(slave) == before
    assert window(slave) is None  # a window without a size
    os.close(master)
    os.close(slave)
    assert window(slave) is None


def test_a_terminal_has_to_be_there(capfd):
    check_terminal(False, True)
    with pytest.raises(SystemExit):
        check_terminal(True, True)
    assert "not a TTY" in capfd.readouterr().err
