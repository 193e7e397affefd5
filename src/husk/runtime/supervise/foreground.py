"""Runs a container to its end for somebody who waits for it: the runtime's `run`, with pipes, and no monitor.

For containers that are of no use without whoever wants their outcome: the steps of builds. The runtime itself is the
parent of the container's first process, hands its exit status on, and forgets it at its end. When the one who waits is
cancelled, the runtime and its children are killed. What is then still in the control group, or known to the runtime, is
for the caller to clear, and so is everything else that was made for the container.
"""

import asyncio
from pathlib import Path

from husk.aio.tasks import Tasks
from husk.kernel import process
from husk.kernel.cgroup_moves import Moves
from husk.runtime import oci
from husk.runtime.supervise.begun import LOG, PID, Begun, Output, complaint_of
from husk.runtime.supervise.begun import ContainerEnd as ContainerEnd
from husk.runtime.supervise.stdio import Streams, Terminal


class Foreground:
    def __init__(self, moves: Moves | None = None) -> None:
        self._moves = moves or Moves()
        self._tasks = Tasks()

    def expect(self) -> None:
        """A container will be run soon: the earlier this is said, the sooner it runs."""
        self._moves.expect()

    def begin(self, directory: Path, container_id: str, runtime: oci.OCIRuntime) -> Begun:
        """The runtime for the container of a bundle's directory. It can be started before that is there."""
        argv = [runtime.program, *runtime.global_args, "--log", str(directory / LOG), "run"]
        argv += ["--bundle", str(directory), "--pid-file", str(directory / PID), container_id]
        return Begun(argv, directory, container_id, self._moves)

    async def run(
        self, directory: Path, container_id: str, runtime: oci.OCIRuntime, output: Output, command: str = ""
    ) -> ContainerEnd:
        """Run the container of a complete bundle to its end: see `Begun.run`."""
        async with self.begin(directory, container_id, runtime) as begun:
            return await begun.run(b"", output, command)

    async def talk(
        self, directory: Path, container_id: str, runtime: oci.OCIRuntime, streams: Streams, command: str = ""
    ) -> ContainerEnd:
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
    ) -> ContainerEnd:
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
    ) -> ContainerEnd:
        log, pid_file = directory / LOG, directory / PID
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
        return ContainerEnd(status, await asyncio.to_thread(complaint_of, log, pid_file, command) if status else "")


def pid_in(directory: Path) -> int:
    """The process that was started with this directory; 0 if there is none yet."""
    try:
        return int((directory / PID).read_text() or "0")
    except (FileNotFoundError, ValueError):
        return 0


def _write(file: Path, data: bytes) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.write_bytes(data)
