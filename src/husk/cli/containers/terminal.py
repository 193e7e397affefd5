"""A person at a terminal, or a program behind a pipe, with a process in a container: what is typed goes there, what it
writes comes here, and the window's size and signals go along."""

import asyncio
import os
import signal
import sys
import termios
import threading
import tty
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, TypeVar

from husk.aio.tasks import Tasks
from husk.cli.containers.keys import KeyWatch
from husk.cli.kit.writing import complain, write
from husk.client.console import Console
from husk.errors import HuskError

_PIECE = 1 << 15
_FORWARDED = ("HUP", "INT", "QUIT", "USR1", "USR2", "ALRM", "TERM", "CONT", "TSTP")
_IMPATIENT = 3
_LEAVING = (signal.SIGINT, signal.SIGTERM)
T = TypeVar("T")
Taker = Callable[[str, bytes], None]


def passed_on(stream: str, data: bytes) -> None:
    """Written here as it was written there."""
    write(2 if stream == "stderr" else 1, data)


@contextmanager
def raw_terminal(descriptor: int = 0) -> Iterator[None]:
    """Every key goes to the container, and none is shown by the terminal itself; afterwards all is as before."""

    before = termios.tcgetattr(descriptor)
    try:
        tty.setraw(descriptor, termios.TCSANOW)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def window(descriptor: int = 1) -> tuple[int, int] | None:
    """Its height and width; None where it is no terminal."""
    try:
        size = os.get_terminal_size(descriptor)
    except OSError:
        return None
    return (size.lines, size.columns) if size.lines and size.columns else None


class TerminalTalk:
    """A conversation with a process. `tty` says that it has a terminal, so that ours is made raw; `source` is where
    input comes from."""

    def __init__(
        self, console: Console, *, stdin: bool, tty: bool, keys: bytes, take: Taker = passed_on, source: int = 0
    ) -> None:
        self._console = console
        self._stdin = stdin
        self._tty = tty
        self._take = take
        self._source = source
        self._watch = KeyWatch(keys if tty else b"")
        self._tasks = Tasks()
        self._detached = asyncio.Event()

    async def hold(self) -> bool:
        """Until the process writes no more; True when the person at the terminal has left it before."""
        loop = asyncio.get_running_loop()
        with raw_terminal(self._source) if self._stdin and self._tty and os.isatty(self._source) else nullcontext():
            if self._tty and window() is not None:
                loop.add_signal_handler(signal.SIGWINCH, lambda: self._tasks.spawn(self.resize(), "resize"))
            if self._stdin:
                threading.Thread(target=self._read_keys, args=(loop,), daemon=True).start()
            writing = self._tasks.spawn(self._pass_on(), "output", awaited=True)
            leaving = self._tasks.spawn(self._detached.wait(), "detach keys", awaited=True)
            try:
                await asyncio.wait({writing, leaving}, return_when=asyncio.FIRST_COMPLETED)
                if writing.done():
                    writing.result()
                return not writing.done()
            finally:
                loop.remove_signal_handler(signal.SIGWINCH)
                await self._tasks.cancel_all()

    async def resize(self) -> None:
        """Tell it the size of our window. A process that has just ended has none."""
        if self._tty and (size := window()) is not None:
            with suppress(HuskError):
                await self._console.resize(*size)

    async def _pass_on(self) -> None:
        async for stream, data in self._console:
            self._take(stream, data)

    def _read_keys(self, loop: asyncio.AbstractEventLoop) -> None:
        """In a thread, for stdin may be a file, a pipe or a terminal; the program does not wait for it to end."""
        with suppress(OSError, RuntimeError, asyncio.CancelledError):
            while data := os.read(self._source, _PIECE):
                passed = self._watch.feed(data)
                if passed:
                    asyncio.run_coroutine_threadsafe(self._console.write(passed), loop).result()
                if self._watch.detached:
                    loop.call_soon_threadsafe(self._detached.set)
                    return
            asyncio.run_coroutine_threadsafe(self._console.write_eof(), loop).result()


@contextmanager
def forwarded(send: Callable[[str], Awaitable[None]]) -> Iterator[None]:
    """Signals that we get go to the container; who asks to end three times ends the client."""
    loop = asyncio.get_running_loop()
    tasks = Tasks()
    asked = 0

    def forward(name: str) -> None:
        nonlocal asked
        if name in ("INT", "TERM"):
            asked += 1
            if asked >= _IMPATIENT:
                complain("got 3 SIGTERM/SIGINTs, forcefully exiting")
                raise SystemExit(1)
        tasks.spawn(_sent(send, name), f"signal {name}")

    numbers = {name: signal.Signals[f"SIG{name}"] for name in _FORWARDED}
    for name, number in numbers.items():
        loop.add_signal_handler(number, forward, name)
    try:
        yield
    finally:
        for number in numbers.values():
            loop.remove_signal_handler(number)


async def unless_left(work: Coroutine[Any, Any, T]) -> T | None:
    """Return the result of the work; None when the user leaves it, by ctrl-C or SIGTERM."""
    loop = asyncio.get_running_loop()
    task = Tasks().spawn(work, "talk", awaited=True)
    left = asyncio.Event()

    def leave() -> None:
        left.set()
        task.cancel()

    for number in _LEAVING:
        loop.add_signal_handler(number, leave)
    try:
        return await task
    except asyncio.CancelledError:
        if not left.is_set():
            raise
        return None
    finally:
        for number in _LEAVING:
            loop.remove_signal_handler(number)


async def _sent(send: Callable[[str], Awaitable[None]], name: str) -> None:
    """A container that has ended in between needs no signal."""
    with suppress(HuskError):
        await send(name)


def check_terminal(stdin: bool, tty: bool) -> None:
    """A terminal is asked for: there has to be one."""
    if stdin and tty and not sys.stdin.isatty():
        complain("the input device is not a TTY")
        raise SystemExit(1)
