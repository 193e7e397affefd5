"""More processes in a container."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any, NamedTuple, Self

import msgspec

from husk.client import markup, output
from husk.client.calls import Calls, field
from husk.client.console import Console
from husk.client.output import STDOUT, Captured, Piece
from husk.client.spec import Command, environment, words
from husk.errors import CommandFailed, InvalidParameter, NotFound, NotImplementedYet

# A process that could not be started has no number. dockerd answers the attempt as if its reason were the output.
_NEVER_STARTED = (126, 127, 128)
_NO_PROCESS = b"OCI runtime exec failed: "
_KILLED = 137
# Of what a command that fails has written, its error shows so much.
_SHOWN = 500


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

    @property
    def text(self) -> str:
        """The standard output as text, without the end of its last line; what is no UTF-8 is shown as `\ufffd`."""
        return self.stdout.decode(errors="replace").removesuffix("\n").removesuffix("\r")

    def check(self) -> Self:
        """Give the result itself, if the process has ended well.

        :returns: the result.
        :raises CommandFailed: the exit code is not 0, or the time was over; the message has the end of the output.
        """
        if self.ok:
            return self
        how = "its time was over" if self.timed_out else f"it ended with exit code {self.exit_code}"
        how += ": it used too much memory" if self.oom_killed else ""
        written = (self.stderr or self.stdout).decode(errors="replace").strip()[-_SHOWN:]
        raise CommandFailed(f"the command failed: {how}" + (f"\n{written}" if written else ""), self.exit_code)

    def _repr_html_(self) -> str:
        return markup.result(self.exit_code, self.ok, self.stdout, self.stderr)


class Limits(NamedTuple):
    """The time and the output that a process may take, and whether its failure is an error."""

    timeout: float | None = None
    max_output: int | None = None
    check: bool = False


class Exec:
    """A process to be started in a running container: await it for its result, or read what it writes.

    result = await box.exec(["ls", "/"], timeout=5, check=True)
    async for line in box.exec("echo one").lines():
        print(line)
    """

    def __init__(
        self,
        calls: Calls,
        container: str,
        document: Mapping[str, Any],
        given: bytes | None,
        limits: Limits | None = None,
    ) -> None:
        self._calls = calls
        self._container = container
        self._document = document
        self._given = given
        self._limits = limits or Limits()
        self.id = ""  #: The id; empty until it is started
        self.exit_code: int | None = None  #: The exit code; None until it has ended
        self.timed_out = False  #: True if it was killed because its time was over

    def __await__(self) -> Generator[Any, None, Result]:
        """Run the process to its end, and give its `Result`."""
        return self._result().__await__()

    async def __aiter__(self) -> AsyncIterator[Piece]:
        """Yield the output as it comes; at its end the process has ended and `exit_code` is known.

        Whoever leaves before the end has the process killed, where the engine is Husk: dockerd cannot end it. So it is
        when its time is over, which is a TimeoutError here; with `check` an exit code that is not 0 is CommandFailed.
        """
        async with aclosing(self._pieces()) as pieces:
            async for piece in pieces:
                yield piece
        if self.timed_out:
            raise TimeoutError(f"the process did not end within {self._limits.timeout:g} seconds")
        if self._limits.check and self.exit_code:
            raise CommandFailed(f"the command failed: it ended with exit code {self.exit_code}", self.exit_code)

    async def _pieces(self) -> AsyncGenerator[Piece, None]:
        """The output, until the process ends or its time is over. What may be the reason why there is no process is
        kept back until more comes."""
        loop, limit = asyncio.get_running_loop(), self._limits.timeout
        deadline = None if limit is None else loop.time() + limit
        kept_back, told = b"", {}
        try:
            # Only our own waiting is timed: what the caller does with a piece is the caller's.
            async with (timing := asyncio.timeout_at(deadline)):
                console = await self.open()
            async with console, self._calls.tasks.awaited(self._give(console), "give input"):
                pieces, first = aiter(console), True
                while True:
                    async with (timing := asyncio.timeout_at(deadline)):
                        piece = await anext(pieces, None)
                    if piece is None:
                        break
                    if first and piece.data.startswith(_NO_PROCESS):
                        kept_back = piece.data
                    else:
                        if kept_back:
                            yield Piece(STDOUT, kept_back)
                            kept_back = b""
                        yield piece
                    first = False
            async with (timing := asyncio.timeout_at(deadline)):
                told = await self.inspect()
            self.exit_code = int(field(told, "ExitCode"))
        except TimeoutError:
            # Not by the clock: uvloop's is behind by a part of a millisecond when its timers go off.
            if not timing.expired():
                raise
            self.timed_out = True
        finally:
            if self.id and self.exit_code is None:
                await self._calls.tasks.to_its_end(self.end(), "end a process")
        if self.timed_out:
            self.exit_code = _KILLED
        elif self.exit_code in _NEVER_STARTED and told.get("Pid") == 0:
            reason = kept_back.decode(errors="replace").strip()
            raise InvalidParameter(reason or f"the command cannot be run: it ended with exit code {self.exit_code}")
        elif kept_back:
            yield Piece(STDOUT, kept_back)

    async def _give(self, console: Console) -> None:
        """Write the input while the output is read: a process may write before it has read all."""
        if self._given is not None:
            with suppress(ConnectionError):  # it has ended without reading all
                await console.write(self._given)
                await console.write_eof()

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
        kept = Captured(self._limits.max_output)
        async with aclosing(self._pieces()) as pieces:
            async for stream, data in pieces:
                kept.add(stream, data)
        assert self.exit_code is not None
        result = Result(
            exit_code=self.exit_code,
            stdout=kept.stdout,
            stderr=kept.stderr,
            timed_out=self.timed_out,
            truncated=kept.truncated,
        )
        return result.check() if self._limits.check else result


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
