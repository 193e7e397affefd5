"""Running a container to its end in one call, which Husk has and dockerd has not: see `husk.api.routes.runs`."""

import asyncio
import json
from base64 import b64encode
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from husk.client.calls import Calls
from husk.client.container import Container
from husk.client.ending import Ending, read
from husk.client.execs import Result
from husk.client.http import Connection, Response
from husk.client.output import STDERR, STDOUT, Captured, Frames
from husk.client.spec import ContainerSpec, document
from husk.errors import Conflict, NotFound

# More input than this is written while the container reads it, on a connection of its own.
MOST_INPUT = 1 << 20
_ENDING = "ending"
_STREAMS = {1: STDOUT, 2: STDERR, 3: _ENDING}


class NoSuchOperation(Exception):
    """The engine is one of ours, and older than this call."""


class CapturedOutput(Captured):
    """The output of a run, which its end makes a result of."""

    def result(self, end: Ending, *, timed_out: bool) -> Result:
        return Result(
            exit_code=end.code,
            stdout=self.stdout,
            stderr=self.stderr,
            timed_out=timed_out,
            oom_killed=end.oom_killed,
            truncated=self.truncated,
        )


class Begun(NamedTuple):
    """A container that runs, and the answer that tells of it."""

    container: Container
    connection: Connection
    response: Response
    frames: Frames


class Runs:
    def __init__(self, calls: Calls, remove: Callable[[Container], Coroutine[Any, Any, None]]) -> None:
        """`remove` removes a container, whatever it does."""
        self._calls = calls
        self._remove = remove

    async def begin(self, wanted: ContainerSpec, given: bytes | None) -> Begun:
        """The container when its process runs. Who is cancelled meanwhile leaves none behind."""
        body = document(wanted)
        if given is not None:
            body["Input"] = b64encode(given).decode()
        query = {"name": wanted.name or None, "platform": wanted.platform or None}
        try:
            return await self._calls.made(self._begun(query, msgspec.json.encode(body)), self._leave)
        except NotFound as error:
            if error.message == "page not found":
                raise NoSuchOperation from None
            raise

    async def followed(
        self, begun: Begun, kept: CapturedOutput, timeout: float | None, leave_when_full: bool
    ) -> Result:
        """Return the end of a run, and the output that was kept. If cancelled meanwhile, leave no container behind."""
        end: Ending | None = None
        try:
            timed_out = killed = False
            try:
                async with asyncio.timeout(timeout):
                    end = await _read(begun, kept, leave_when_full)
                    killed = end is None
            except TimeoutError:
                timed_out = killed = True
            if killed:
                with suppress(Conflict, NotFound):  # it has ended meanwhile, or is gone
                    await begun.container.kill()
                end = await _read(begun, CapturedOutput(0), False)
            assert end is not None
            return kept.result(end, timed_out=timed_out)
        finally:
            if end is None:
                await self._calls.tasks.to_its_end(self._leave(begun), f"remove {begun.container.short_id}")
            else:
                self._calls.keep(begun.connection, begun.response)

    async def _begun(self, query: Mapping[str, object], content: bytes) -> Begun:
        headers = {"Content-Type": "application/json"}
        connection, response = await self._calls.begun("POST", "/containers/run", query, content, headers)
        container = Container(self._calls, {"Id": response.headers["x-husk-container"]})
        return Begun(container, connection, response, Frames(_STREAMS))

    async def _leave(self, begun: Begun) -> None:
        begun.response.close()
        await self._remove(begun.container)


async def _read(begun: Begun, kept: CapturedOutput, leave_when_full: bool) -> Ending | None:
    """Its end, when all has been read; None where it is left because it has written too much."""
    end: Ending | None = None
    while data := await begun.response.next():
        for stream, piece in begun.frames.feed(data):
            if stream == _ENDING:
                end = read(json.loads(piece))
                continue
            kept.add(stream, piece)
            if kept.truncated and leave_when_full:
                return None
    return end
