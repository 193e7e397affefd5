"""More processes in a container."""

from collections.abc import AsyncIterator, Generator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from husk.client import output
from husk.client.calls import Calls, field
from husk.client.console import Console
from husk.client.output import Piece
from husk.client.spec import Command, environment, words
from husk.errors import NotFound, NotImplementedYet


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a process, and its output.

    result = await engine.run("busybox", ["echo", "hi"])
    assert result.ok and result.stdout == b"hi\\n"
    """

    exit_code: int  #: The exit code
    stdout: bytes  #: Its standard output
    stderr: bytes  #: Its standard error
    timed_out: bool = False  #: True if it was killed because its time was over
    oom_killed: bool = False  #: True if it was killed because it used too much memory
    truncated: bool = False  #: True if not all of its output was kept

    @property
    def ok(self) -> bool:
        """True if the exit code is 0, and the time was not over."""
        return self.exit_code == 0 and not self.timed_out


class Exec:
    """A process to be started in a running container: await it for its result, or read what it writes.

    result = await box.exec(["ls", "/"])
    async for line in box.exec(["tail", "-f", "/log"]).lines(): ...
    """

    def __init__(self, calls: Calls, container: str, document: Mapping[str, Any], given: bytes | None) -> None:
        self._calls = calls
        self._container = container
        self._document = document
        self._given = given
        self.id = ""  #: The id; empty until it is started
        self.exit_code: int | None = None  #: The exit code; None until it has ended

    def __await__(self) -> Generator[Any, None, Result]:
        """Run the process to its end, and give its `Result`."""
        return self._result().__await__()

    async def __aiter__(self) -> AsyncIterator[Piece]:
        """Yield the output as it comes; at its end the process has ended and `exit_code` is known.

        Whoever leaves before the end has the process killed, where the engine is Husk: dockerd cannot end it.
        """
        try:
            async with await self.open() as console:
                if self._given is not None:
                    await console.write(self._given)
                    await console.write_eof()
                async for piece in console:
                    yield piece
            self.exit_code = field(await self.inspect(), "ExitCode")
        finally:
            if self.id and self.exit_code is None:
                await self._calls.tasks.to_its_end(self.end(), "end a process")

    def lines(self) -> AsyncIterator[str]:
        """Yield the output line by line, without the ends of lines.

        :returns: the lines of both streams, in the order of their ends.
        """
        return output.lines(self)

    async def open(self) -> Console:
        """Start the process, with both directions in hand.

        :returns: both directions.
        :raises InvalidParameter: the command cannot be run.
        :raises Conflict: the container does not run, or the process was started before.
        """
        await self._create()
        tty = bool(self._document["Tty"])
        taken = await self._calls.upgrade(f"/exec/{self.id}/start", {"Detach": False, "Tty": tty})
        return Console(*taken, multiplexed=not tty, resize=self._resize)

    async def start(self) -> None:
        """Start the process and let it run by itself.

        :raises InvalidParameter: the command cannot be run.
        :raises Conflict: the container does not run, or the process was started before.
        """
        await self._create()
        await self._calls.post(f"/exec/{self.id}/start", {"Detach": True, "Tty": self._document["Tty"]})

    async def end(self) -> None:
        """Kill the process, if it runs, and forget it. dockerd has no call for that: there it runs on."""
        with suppress(NotFound, NotImplementedYet):
            await self._calls.delete(f"/exec/{self.id}")

    async def inspect(self) -> dict[str, Any]:
        """Describe the process.

        :returns: the API's document.
        """
        found: dict[str, Any] = await self._calls.get(f"/exec/{self.id}/json")
        return found

    async def _create(self) -> None:
        created = await self._calls.post(f"/containers/{self._container}/exec", self._document)
        self.id = field(created, "Id")

    async def _resize(self, height: int, width: int) -> None:
        await self._calls.post(f"/exec/{self.id}/resize", None, {"h": height, "w": width})

    async def _result(self) -> Result:
        stdout, stderr = await output.collected(self)
        assert self.exit_code is not None
        return Result(exit_code=self.exit_code, stdout=stdout, stderr=stderr)


def document(
    command: Command,
    *,
    environment_of: Mapping[str, str | None] | Sequence[str],
    user: str,
    working_dir: str,
    tty: bool,
    privileged: bool,
    stdin: bool,
    detach_keys: str = "",
) -> dict[str, Any]:
    """The body of `POST /containers/{id}/exec`."""
    return {
        "Cmd": words(command),
        "Env": environment(environment_of),
        "User": user,
        "WorkingDir": working_dir,
        "Tty": tty,
        "Privileged": privileged,
        "AttachStdin": stdin,
        "AttachStdout": True,
        "AttachStderr": True,
        "DetachKeys": detach_keys,
    }
