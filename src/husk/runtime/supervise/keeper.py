"""Runs containers for somebody who waits for them, without a monitor for each: one process (`kernel/keeping.py`) is the
parent of them all.

A monitor is a program of its own that is started and linked anew for each container, which costs as much as a third of
the runtime's work. It outlives the engine, writes a log and lets clients come and go. Who runs a container inside his
own program, reads its output himself and is of no use to it when he is gone needs none of that. So these containers
have pipes to the engine, and end with it: when the engine dies, the process kills them and writes their exit status
where a monitor would have, which is how the next engine knows.

The process is started with the first of them, and ends with the engine.
"""

import asyncio
import contextlib
import itertools
import json
import logging
import os
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from husk.aio.tasks import Tasks
from husk.errors import SystemFault
from husk.kernel import keeping, process
from husk.kernel.lean_mounts import Copies, LeanMounts
from husk.runtime import oci
from husk.runtime.complaints import fault
from husk.runtime.process import Process
from husk.runtime.supervise.conmon import Apart, Bundle, Monitor, MonitoredProcess
from husk.runtime.supervise.pipes import PipeConsole
from husk.text.documents import decode

_ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
_LARGEST = 1 << 12
_LONGEST_LOG = 1 << 16
_PATIENCE = 60.0

log = logging.getLogger(__name__)


class _Said(msgspec.Struct):
    id: int
    pid: int = 0
    status: int = 0
    exit: int | None = None
    error: str = ""


class KeptProcess:
    """A container's process, whose parent is the keeper's process. It is known and held as soon as that has made it."""

    process: Process

    def __init__(self, console: PipeConsole, keeper: int, started: int) -> None:
        loop = asyncio.get_running_loop()
        self.pid = 0
        self.monitor_pid, self.monitor_started = keeper, started
        self.told: asyncio.Future[_Said] = loop.create_future()
        self._console = console
        self._end: asyncio.Future[None] = loop.create_future()

    async def wait(self) -> None:
        """Return when the exit status is there, or nobody knows it."""
        await asyncio.shield(self._end)

    def close(self) -> None:
        """Let go of the process; the console is its reader's. Safe to call twice."""
        if self.pid:
            self.process.close()

    async def attach(self, *, accepts: bool = True) -> PipeConsole:
        """Take the streams; what is written from now on is seen. There is one reader at a time."""
        self._console.take()
        return self._console

    def made(self, pid: int) -> None:
        self.process = Process(pid)
        self.pid = pid

    def heard(self, said: _Said) -> None:
        if said.exit is not None:
            self.lost()
        elif not self.told.done():
            self.told.set_result(said)

    def lost(self) -> None:
        """It has ended, or nobody knows how it does."""
        if not self.told.done():
            self.told.set_result(_Said(0, status=1, error="the process that runs containers has ended"))
        if not self._end.done():
            self._end.set_result(None)
            self._console.finish()


class Keeper:
    def __init__(self, monitor: Monitor, lean: LeanMounts) -> None:
        self._monitor = monitor
        self._lean = lean
        self._line: socket.socket | None = None
        self._pid = self._started = 0
        self._starting = asyncio.Lock()
        self._numbers = itertools.count(1)
        self._runs: dict[int, KeptProcess] = {}
        self._tasks = Tasks()
        self._closed = False
        self._fails = False

    async def create(
        self, bundle: Bundle, runtime: oci.OCIRuntime, timeout: float = 120.0, apart: Apart | None = None
    ) -> KeptProcess | MonitoredProcess:
        """Make the container of a bundle that is newly written; it waits for `runtime.start`. One that cannot be made
        apart from the host's mounts has a monitor. When this fails nothing runs, but the runtime may know the id."""
        if apart is not None and (kept := await self._create(bundle, runtime, timeout, apart)) is not None:
            return kept
        return await self._monitor.create(bundle, runtime, timeout, apart)

    async def _create(
        self, bundle: Bundle, runtime: oci.OCIRuntime, timeout: float, apart: Apart
    ) -> KeptProcess | None:
        if (line := await self._begun()) is None:
            return None
        number = next(self._numbers)
        streams, console = _streams(bundle)
        kept = self._runs[number] = KeptProcess(console, self._pid, self._started)
        brought: Sequence[object] = ()
        try:
            try:
                brought = await self._monitor.started_apart(_asking(line, number, bundle, runtime, streams), apart)
            finally:
                for fd in streams:
                    os.close(fd)
            if not brought:
                return None
            try:
                async with asyncio.timeout(timeout):
                    said = await asyncio.shield(kept.told)
            except BaseException as error:
                # A runtime that is still at work would make things again that the caller removes.
                await self._tasks.to_its_end(self._dropped(line, number, kept), "end a runtime")
                if isinstance(error, TimeoutError):
                    raise SystemFault(f"{runtime.name} create did not finish within {timeout:g} seconds") from None
                raise
            if not said.pid:
                text = said.error or await asyncio.to_thread(_written, _log(bundle))
                raise SystemFault(fault(runtime.name, "create", text, bundle.command))
            kept.made(said.pid)
            self._monitor.moved()
            return kept
        finally:
            if brought:
                self._lean.forget(apart.copies.brought)
            if not kept.pid:
                kept.lost()
                console.close()
                self._runs.pop(number, None)

    def close(self) -> None:
        """Let the process go; it ends with what it still keeps."""
        self._closed = True
        self._hang_up()

    async def _begun(self) -> socket.socket | None:
        """The line to the process, which is started if there is none; None where that cannot be."""
        async with self._starting:
            if self._closed:
                raise SystemFault("no more containers are run")
            if self._line is None and not self._fails:
                try:
                    await self._tasks.to_its_end(self._begin(), "start the process that runs containers")
                except (OSError, TimeoutError, SystemFault) as error:
                    log.warning("each container that is run has a monitor, which takes longer: %s", error)
                    self._fails = True
            return self._line

    async def _begin(self) -> None:
        # Where runtimes are started: what it starts is there, too.
        ours, child = await self._lean.call(_start, Copies(()))
        process.reap_later(child)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_PATIENCE):
                if not await loop.sock_recv(ours, _LARGEST):
                    raise SystemFault(f"{sys.executable} does not run {keeping.__file__}")
        except BaseException:
            ours.close()
            raise
        self._line, self._pid, self._started = ours, child.pid, process.start_time(child.pid) or 0
        loop.add_reader(ours.fileno(), self._hear)

    def _hear(self) -> None:
        line = self._line
        while line is not None and line is self._line:
            try:
                data = line.recv(_LARGEST)
            except BlockingIOError:
                return
            except ConnectionError:
                data = b""
            if not data:
                self._hang_up()
                return
            said = decode(data, _Said)
            run = self._runs.pop(said.id, None) if said.exit is not None else self._runs.get(said.id)
            if run is not None:
                run.heard(said)

    def _hang_up(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            asyncio.get_running_loop().remove_reader(line.fileno())
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)  # a child that the program has forked may have it, too
            line.close()
        runs, self._runs = self._runs, {}
        for run in runs.values():
            run.lost()

    async def _dropped(self, line: socket.socket, number: int, kept: KeptProcess) -> None:
        with contextlib.suppress(OSError):
            line.send(json.dumps({"id": number, "drop": True}).encode())
        await asyncio.shield(kept.told)


def _streams(bundle: Bundle) -> tuple[list[int], PipeConsole]:
    """The container's ends of its streams, and ours."""
    ours: list[int] = []
    theirs: list[int] = []
    try:
        if bundle.stdin_open:
            reader, writer = os.pipe2(os.O_CLOEXEC)
            theirs.append(reader)
            ours.append(writer)
        else:
            theirs.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
            ours.append(-1)
        for _ in range(2):
            reader, writer = os.pipe2(os.O_CLOEXEC)
            theirs.append(writer)
            ours.append(reader)
    except BaseException:
        for fd in (*ours, *theirs):
            if fd >= 0:
                os.close(fd)
        raise
    stdin, stdout, stderr = ours
    return theirs, PipeConsole(stdin, stdout, stderr, bundle.closes_stdin)


def _asking(
    line: socket.socket, number: int, bundle: Bundle, runtime: oci.OCIRuntime, streams: Sequence[int]
) -> Callable[[], None]:
    directory = str(bundle.directory)
    argv = [runtime.program, *runtime.global_args, "--log", _log(bundle), "create"]
    argv += ["--bundle", directory, "--pid-file", f"{directory}/pid", bundle.container_id]
    asked = {"id": number, "argv": argv, "env": _ENVIRONMENT, "pid": f"{directory}/pid", "exit": f"{directory}/exit"}
    message = json.dumps(asked).encode()

    def ask() -> None:
        try:
            socket.send_fds(line, [message], streams)
        except OSError as error:
            raise SystemFault(f"the process that runs containers does not answer: {error.strerror}") from error

    return ask


def _start() -> tuple[socket.socket, process.Child]:
    """A line to a new process that keeps containers."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        try:
            command = [sys.executable, "-I", "-S", keeping.__file__, str(os.getpid())]
            child = process.spawn(command, stdin=theirs.fileno(), stderr=2, cwd="/")
        except BaseException:
            ours.close()
            raise
    ours.setblocking(False)
    return ours, child


def _log(bundle: Bundle) -> str:
    return f"{bundle.directory}/runtime.log"


def _written(path: str) -> str:
    try:
        with Path(path).open(errors="replace") as file:
            return file.read(_LONGEST_LOG)
    except OSError:
        return ""
