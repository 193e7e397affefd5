"""Runs a container to its end for somebody who waits for it: the runtime's `run`, with pipes, and no monitor.

For containers that are of no use without whoever wants their outcome: the steps of builds. The runtime itself is the
parent of the container's first process, hands its exit status on, and forgets it at its end. When the one who waits is
cancelled, the runtime and its children are killed. What is then still in the control group, or known to the runtime, is
for the caller to clear, and so is everything else that was made for the container.
"""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from husk.kernel import process
from husk.kernel.cgroup_moves import Moves
from husk.runtime import complaints, oci
from husk.runtime.stdio import Streams, Terminal
from husk.tasks import Tasks

_CHUNK = 64 * 1024
# Whoever still holds a pipe when the container has ended is not of the container.
_PATIENCE = 1.0
_LONGEST_LOG = 64 * 1024

Output = Callable[[bytes, bool], None]


class Ended(NamedTuple):
    """How a container ended: its exit status (128 + signal when killed), and why it did not even begin, if so."""

    status: int
    complaint: str = ""


class Foreground:
    def __init__(self, moves: Moves | None = None) -> None:
        self._moves = moves or Moves()
        self._tasks = Tasks()

    def expect(self) -> None:
        """A container will be run soon: the earlier this is said, the sooner it runs."""
        self._moves.expect()

    async def run(
        self, directory: Path, container_id: str, runtime: oci.OCIRuntime, output: Output, command: str = ""
    ) -> Ended:
        """Run the container of a bundle's directory. `output` is told each piece, and whether it is of stderr.

        `command` is the first word of what is run, for error messages.
        """
        log, pid_file = directory / "runtime.log", directory / "pid"
        argv = [runtime.program, *runtime.global_args, "--log", str(log), "run"]
        argv += ["--bundle", str(directory), "--pid-file", str(pid_file), container_id]
        with _Pipe(lambda data: output(data, False)) as stdout, _Pipe(lambda data: output(data, True)) as stderr:
            child = process.spawn(argv, stdout=stdout.writer, stderr=stderr.writer)
            stdout.begin()
            stderr.begin()
            try:
                status = await process.wait(child)
            except BaseException:
                await self._tasks.to_its_end(process.end_family(child), "end a runtime")
                raise
            # Another step may follow. This one was moved a moment ago if it was short: then this costs nothing.
            self._moves.expect()
            await stdout.ended()
            await stderr.ended()
        status = status if status >= 0 else 128 - status
        return Ended(status, await asyncio.to_thread(_complaint, log, pid_file, command) if status else "")

    async def talk(
        self, directory: Path, container_id: str, runtime: oci.OCIRuntime, streams: Streams, command: str = ""
    ) -> Ended:
        """The same with streams that the caller reads and writes meanwhile."""
        return await self._attended(
            directory, runtime, ["run", "--bundle", str(directory)], container_id, streams, command
        )

    async def talk_beside(
        self,
        directory: Path,
        container_id: str,
        runtime: oci.OCIRuntime,
        spec: bytes,
        streams: Streams,
        command: str = "",
    ) -> Ended:
        """Another process in a container that runs; `directory` is for its files alone."""
        file = directory / "process.json"
        await asyncio.to_thread(_write, file, spec)
        return await self._attended(
            directory, runtime, ["exec", "--process", str(file)], container_id, streams, command
        )

    async def _attended(
        self,
        directory: Path,
        runtime: oci.OCIRuntime,
        verb: list[str],
        container_id: str,
        streams: Streams,
        command: str,
    ) -> Ended:
        log, pid_file = directory / "runtime.log", directory / "pid"
        argv = [runtime.program, *runtime.global_args, "--log", str(log), *verb, "--pid-file", str(pid_file)]
        if isinstance(streams, Terminal):
            if runtime.sends_terminal:
                argv += ["--console-socket", streams.console_socket]
            else:
                streams.relay()
        child = process.spawn([*argv, container_id], stdin=streams.stdin, stdout=streams.stdout, stderr=streams.stderr)
        streams.begin()
        try:
            if isinstance(streams, Terminal) and not runtime.sends_terminal:
                streams.relayed_by(child.pid)
            status = await process.wait(child)
        except BaseException:
            await self._tasks.to_its_end(process.end_family(child), "end a runtime")
            raise
        finally:
            if isinstance(streams, Terminal):
                streams.relayed_by(0)
        status = status if status >= 0 else 128 - status
        return Ended(status, await asyncio.to_thread(_complaint, log, pid_file, command) if status else "")


def pid_in(directory: Path) -> int:
    """The process that was started with this directory; 0 if there is none yet."""
    try:
        return int((directory / "pid").read_text() or "0")
    except (FileNotFoundError, ValueError):
        return 0


def _write(file: Path, data: bytes) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.write_bytes(data)


class _Pipe:
    """The way of one stream to us."""

    def __init__(self, told: Callable[[bytes], None]) -> None:
        self._told = told
        self._end = asyncio.Event()
        self._reader, self.writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(self.writer, True)

    def __enter__(self) -> "_Pipe":
        return self

    def __exit__(self, *_: object) -> None:
        self._close_writer()
        if self._reader >= 0:
            asyncio.get_running_loop().remove_reader(self._reader)
            os.close(self._reader)
            self._reader = -1

    def begin(self) -> None:
        """The other side has its end now."""
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


def _complaint(log: Path, pid_file: Path, command: str) -> str:
    """Why the runtime could not start the program; empty if it has: then the status is the program's own."""
    try:
        with log.open(errors="replace") as file:
            text = complaints.complaint(file.read(_LONGEST_LOG), command)
    except FileNotFoundError:
        return ""
    return text if not pid_file.exists() or "exec" in text else ""
