"""Holds a program between its exec and its first instruction, until its terminal has a size.

    async with held_until_sized(parent):     # a process whose child sleeps, and is to become a runtime soon
        ...                                  # let it: the runtime enters a container and executes a program there

The kernel stops who is traced at each fork and at each exec. So a thread traces the child, and with it all that it
starts, lets them go on at each stop, and holds the first that executes a program with other mounts than the parent has:
that is the one in the container. When the block is left nobody is held and nobody traced; the end of the thread, or of
this whole process, lets all of them go, too.

A program with the set-user-ID bit keeps that only if whoever traces it may trace everybody (CAP_SYS_PTRACE): without
that nobody is held, and neither is he where the host forbids tracing.
"""

import array
import asyncio
import contextlib
import ctypes
import fcntl
import logging
import os
import signal
import termios
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

from husk.aio.lone_thread import begin
from husk.errors import Unavailable

log = logging.getLogger(__name__)

# How long a program waits for its size, and for how long its coming is waited for.
_PATIENCE, _LONGEST = 2.0, 60.0
_LOOK = 0.0003

_CONT, _DETACH, _SEIZE, _INTERRUPT, _LISTEN = 7, 17, 0x4206, 0x4207, 0x4208
_EVENT_EXEC, _EVENT_STOP = 4, 128
_TRACE_FORKS_AND_EXECS = 2 | 4 | 8 | 16
_OF_THIS_THREAD = 0x20000000  # __WNOTHREAD
_ANY_CHILD = 0x40000000  # __WALL
_CAP_SYS_PTRACE = 19
_GROUP_STOPS = (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


@contextlib.asynccontextmanager
async def held_until_sized(parent: int) -> AsyncIterator[None]:
    """Trace what the process has started meanwhile. Nothing happens where that cannot be done."""
    tracer = _Tracer(parent, asyncio.get_running_loop())
    try:
        begin(tracer.thread)
    except Unavailable as error:
        log.warning("a terminal may have no size when its program starts: %s", error.message)
        yield
        return
    try:
        await tracer.begun
        yield
    finally:
        tracer.over.set()
        # It looks several times in a millisecond.
        await asyncio.shield(tracer.ended)


class _Tracer:
    def __init__(self, parent: int, loop: asyncio.AbstractEventLoop) -> None:
        self._parent = parent
        self._loop = loop
        self.begun: asyncio.Future[None] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()
        self.over = threading.Event()
        self._traced: set[int] = set()
        self._held = 0
        self.thread = threading.Thread(target=self._run, name="exec-hold", daemon=True)

    def _run(self) -> None:
        try:
            outside = os.readlink(f"/proc/{self._parent}/ns/mnt")
            if may_trace_everybody():
                try:
                    for child in Path(f"/proc/{self._parent}/task/{self._parent}/children").read_text().split():
                        ptrace(_SEIZE, int(child), _TRACE_FORKS_AND_EXECS)
                        self._traced.add(int(child))
                    self._tell(self.begun)
                    self._trace(outside)
                finally:
                    self._let_go()
        except OSError as error:
            log.debug("a terminal may have no size when its program starts: %s", error)
        finally:
            self._tell(self.begun)
            self._tell(self.ended)

    def _trace(self, outside: str) -> None:
        """Until the program has its size, or nobody is interested any more."""
        deadline = time.monotonic() + _LONGEST
        while (self._held or not self.over.is_set()) and time.monotonic() < deadline:
            pid, status = self._wait()
            if not self._traced or (self._held and self._held not in self._traced):
                return
            if not pid:
                if self._held and has_size(self._held):
                    return
                time.sleep(_LOOK)
            elif os.WIFSTOPPED(status):
                if status >> 16 == _EVENT_EXEC and not self._held and mounts_of(pid) not in (outside, ""):
                    self._held, deadline = pid, time.monotonic() + _PATIENCE
                else:
                    go_on(pid, status)

    def _let_go(self) -> None:
        """Only who has stopped can be let go, with the signal, if any, for which he has: so all are asked to stop."""
        for pid in self._traced:
            with contextlib.suppress(OSError):  # it has been killed meanwhile
                ptrace(_DETACH if pid == self._held else _INTERRUPT, pid, 0)
        self._traced.discard(self._held)
        deadline = time.monotonic() + _PATIENCE
        while self._traced and time.monotonic() < deadline:
            pid, status = self._wait()
            if not pid:
                time.sleep(_LOOK)
            elif os.WIFSTOPPED(status):
                with contextlib.suppress(OSError):  # it has been killed meanwhile
                    ptrace(_DETACH, pid, 0 if status >> 16 else os.WSTOPSIG(status))

    def _wait(self) -> tuple[int, int]:
        """Return a process that has stopped or ended, and how; (0, 0) if none has. `_traced` knows which are left."""
        try:
            pid, status = os.waitpid(-1, os.WNOHANG | _OF_THIS_THREAD | _ANY_CHILD)
        except ChildProcessError:
            self._traced.clear()
            return 0, 0
        if pid and os.WIFSTOPPED(status):
            self._traced.add(pid)
        else:
            self._traced.discard(pid)
        return pid, status

    def _tell(self, future: "asyncio.Future[None]") -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(_done, future)


def _done(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def go_on(pid: int, status: int) -> None:
    """Let who has stopped go on as if nobody had looked."""
    event, number = status >> 16, os.WSTOPSIG(status)
    with contextlib.suppress(OSError):  # it has been killed meanwhile
        if event == _EVENT_STOP and number in _GROUP_STOPS:
            ptrace(_LISTEN, pid, 0)
        else:
            ptrace(_CONT, pid, 0 if event else number)


def ptrace(request: int, pid: int, data: int) -> None:
    if _libc.ptrace(request, pid, None, data) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"trace process {pid}: {os.strerror(number)}")


def may_trace_everybody() -> bool:
    for line in Path("/proc/thread-self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "CapEff":
            return bool(int(value, 16) >> _CAP_SYS_PTRACE & 1)
    return False


def mounts_of(pid: int) -> str:
    """Return the name of the mount namespace of a process; nothing for a process that is gone."""
    try:
        return os.readlink(f"/proc/{pid}/ns/mnt")
    except OSError:
        return ""


def has_size(pid: int) -> bool:
    """Tell if the terminal at a process's standard input has a size. True where there is no terminal to wait for."""
    try:
        terminal = os.open(f"/proc/{pid}/fd/0", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        size = array.array("H", [0] * 4)
        fcntl.ioctl(terminal, termios.TIOCGWINSZ, size)
        return bool(size[0] and size[1])
    except OSError:
        return True
    finally:
        os.close(terminal)
