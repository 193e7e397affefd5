"""A runtime's `run`, which can be started before the bundle of its container is there.

    async with foreground.begin(directory, id, runtime) as begun:
        await begun.start()                 # or not: then `run` does it
        ...                                 # make the bundle, with its config.json renamed into its place
        ended = await begun.run(config, output)

To be loaded takes a runtime a third of what it does for a small container. One that was started early waits at a pipe
by the name of its configuration. When the file is in its place, the same is written to the pipe, and the runtime goes
on; should it come to the pipe later, it finds the file. Only one that has opened the pipe `waits`: who is told between
finding the pipe and opening it comes when nobody writes there any more, and waits for ever. If the daemon dies before,
it reads the end of an empty pipe, and gives up. Whatever is still there when the block is left is killed.
"""

import asyncio
import contextlib
import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Self

from husk.aio.tasks import Tasks
from husk.errors import SystemFault
from husk.kernel import process
from husk.kernel.cgroup_moves import Moves
from husk.kernel.trees import discard_tree
from husk.runtime import complaints

LOG, PID, CONFIG = "runtime.log", "pid", "config.json"

_CHUNK = 64 * 1024
# Whoever still holds a pipe when the container has ended is not of the container.
_PATIENCE = 1.0
_LONGEST_LOG = 64 * 1024
_USUAL_PIPE = 64 * 1024

Output = Callable[[bytes, bool], None]
"""Takes each piece, and whether it is of stderr."""


class ContainerEnd(NamedTuple):
    """The end of a container: its exit status (128 + signal when killed), and why it did not even begin, if so."""

    status: int
    complaint: str = ""


class Begun:
    def __init__(self, argv: list[str], directory: Path, container_id: str, moves: Moves) -> None:
        self.container_id = container_id
        self.directory = directory
        self._argv = argv
        self._moves = moves
        self._tasks = Tasks()
        self._pipes: list[_Pipe] = []
        self._child: process.Child | None = None
        self._config = -1

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.end()

    async def start(self) -> None:
        """Start the runtime, which loads and then waits at the pipe; only for one that `reads_pipes`."""
        await self._tasks.to_its_end(asyncio.to_thread(self._start), "start a runtime")

    @property
    def waits(self) -> bool:
        """True while the runtime, once started, has the pipe open."""
        return self._child is not None and self._config >= 0 and _has_open(self._child.pid, self._config)

    async def run(self, config: bytes, output: Output, command: str = "") -> ContainerEnd:
        """Let the runtime go on with this, which is what the bundle has, and wait for the container's end.

        `command` is the first word of what is run, for error messages.
        """
        if self._child is not None and not self._tell(config):
            await self.end()
        if self._child is None:
            self._child = self._spawn()
        for pipe, stderr in zip(self._pipes, (False, True), strict=True):
            pipe.begin(lambda data, stderr=stderr: output(data, stderr))  # type: ignore[misc]
        try:
            status = await process.wait(self._child)
        except BaseException:
            await self.end()
            raise
        self._child = None
        # Another one may follow. This one was moved a moment ago if it was short: then this costs nothing.
        self._moves.expect()
        for pipe in self._pipes:
            await pipe.ended()
        await self.end()
        status = status if status >= 0 else 128 - status
        log, pid_file = self.directory / LOG, self.directory / PID
        return ContainerEnd(status, await asyncio.to_thread(complaint_of, log, pid_file, command) if status else "")

    async def end(self) -> None:
        """Nothing of it stays, however far it has come. Safe to call twice."""
        try:
            if self._child is not None:
                child, self._child = self._child, None
                await self._tasks.to_its_end(process.end_family(child), "end a runtime")
        finally:
            self._close_config()
            while self._pipes:
                self._pipes.pop().close()

    async def discard(self) -> None:
        """End one that nobody wants, and remove its bundle, which nobody else has put anything into."""
        await self.end()
        await asyncio.to_thread(discard_tree, self.directory)

    def _start(self) -> None:
        """In a thread: the program, which waits at the pipe."""
        pipe = self.directory / CONFIG
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.mkfifo(pipe, 0o600)
            # Both ends of it: nobody waits for the other one to come.
            self._config = os.open(pipe, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            self._child = self._spawn()
        except OSError as error:
            raise SystemFault(f"cannot make a bundle: {error}") from error

    def _spawn(self) -> process.Child:
        for _ in range(2):
            self._pipes.append(_Pipe())
        stdout, stderr = self._pipes
        return process.spawn(self._argv, stdout=stdout.writer, stderr=stderr.writer)

    def _tell(self, config: bytes) -> bool:
        """Write the configuration; False if it is more than the pipe takes."""
        try:
            with contextlib.suppress(PermissionError):
                if len(config) > _USUAL_PIPE:
                    fcntl.fcntl(self._config, fcntl.F_SETPIPE_SZ, len(config))
            return os.write(self._config, config) == len(config)
        except OSError:
            return False
        finally:
            self._close_config()

    def _close_config(self) -> None:
        if self._config >= 0:
            os.close(self._config)
            self._config = -1


class _Pipe:
    """The way of one stream to us."""

    def __init__(self) -> None:
        self._told: Callable[[bytes], None] = _nobody
        self._end = asyncio.Event()
        self._reader, self.writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(self.writer, True)

    def close(self) -> None:
        self._close_writer()
        if self._reader >= 0:
            asyncio.get_running_loop().remove_reader(self._reader)
            os.close(self._reader)
            self._reader = -1

    def begin(self, told: Callable[[bytes], None]) -> None:
        """The other side has its end now."""
        self._told = told
        self._close_writer()
        asyncio.get_running_loop().add_reader(self._reader, self._readable)

    async def ended(self) -> None:
        """Wait for the rest of it."""
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._end.wait()
        except TimeoutError:
            return

    def _readable(self) -> None:
        try:
            data = os.read(self._reader, _CHUNK)
        except BlockingIOError:
            return
        if data:
            self._told(data)
        else:
            asyncio.get_running_loop().remove_reader(self._reader)
            self._end.set()

    def _close_writer(self) -> None:
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1


def _nobody(data: bytes) -> None:
    pass


def _has_open(pid: int, file: int) -> bool:
    """Return True if a process has this file of ours open. One that has ended has none."""
    wanted, directory = os.fstat(file), f"/proc/{pid}/fd"
    try:
        return any(os.path.samestat(os.stat(f"{directory}/{name}"), wanted) for name in os.listdir(directory))
    except OSError:
        return False  # it ends, or has just closed one: then it is not at the pipe, which it reads to the end


def complaint_of(log: Path, pid_file: Path, command: str) -> str:
    """Tell why the runtime could not start the program; empty if it has: then the status is the program's own."""
    try:
        with log.open(errors="replace") as file:
            text = complaints.complaint(file.read(_LONGEST_LOG), command)
    except FileNotFoundError:
        return ""
    return text if not pid_file.exists() or "exec" in text else ""
