"""A container that is made, started, listened to and waited for in one call: what our own library's `run` asks for.

It takes what `create` takes, and `Input`, which its process reads. The answer begins when the process runs, names the
container in a header, and has frames as `attach` has them. The last frame is none of output (`ENDING`): it says what
`wait` says, when the container is gone. Four calls on three connections cost more than the container's own process.

Who leaves in the middle leaves the container running, as with `attach`; it removes itself at its end.
"""

import asyncio
from contextlib import suppress

from msgspec import Struct

from husk.aio.tasks import Tasks
from husk.api.calls.call import Call
from husk.api.calls.router import stream
from husk.api.http.response import Answer
from husk.api.routes.containers import made, wait_response
from husk.api.streams.framing import MULTIPLEXED_STREAM, frame
from husk.api.types.containers import RunExtras
from husk.engine.containers.attach import Attachment
from husk.engine.containers.index import Exit
from husk.errors import InvalidParameter, NotFound
from husk.text.gojson import Document, Reader, encode

ENDING = 3
CONTAINER = "X-Husk-Container"

_extras = Reader(RunExtras)


class _Begun(Struct, frozen=True):
    id: str
    attachment: Attachment
    ended: asyncio.Future[Exit]

    async def let_go(self) -> None:
        self.ended.cancel()
        await self.attachment.close()


async def run(call: Call) -> Answer:
    document = await call.document()
    if document is None:
        raise InvalidParameter("invalid JSON: got EOF while reading request body")
    extras = await call.read(document, _extras)
    if not extras.host_config.auto_remove:
        raise InvalidParameter("a container that is run in one call removes itself: HostConfig.AutoRemove must be true")
    changes = call.common.changes
    # Not cut off when the client leaves: it would be half made.
    beginning = changes.spawn(_begin(call, document, extras.input), "/containers/run", awaited=True)
    try:
        begun = await asyncio.shield(beginning)
    except asyncio.CancelledError:
        changes.spawn(_abandon(beginning), "let go of a run")
        raise
    tasks = Tasks()
    try:
        response = call.stream(MULTIPLEXED_STREAM, {CONTAINER: begun.id})
        tasks.spawn(_feed(begun.attachment, extras.input), "input of a run")
        tasks.spawn(_hang_up(call, begun.attachment), "a run that nobody reads")
        async for source, data in begun.attachment.output():
            await response.write(frame(source, data))
        await response.write(frame(ENDING, encode(wait_response(await begun.ended))))
        await response.write_eof()
        return response
    finally:
        await tasks.cancel_all()
        await begun.let_go()


async def _begin(call: Call, document: Document, given: bytes | None) -> _Begun:
    """The container when its process runs; none is left where that fails."""
    containers = call.engine.containers
    container_id = (await made(call, document, awaited=True)).id
    attachment = None
    try:
        attachment = await containers.attach(
            container_id, stdin=given is not None, stdout=True, stderr=True, logs=False, stream=True
        )
        ended = containers.watch(container_id, "removed")
        await containers.start(container_id, awaited=True)
        return _Begun(container_id, attachment, ended)
    except BaseException:
        if attachment is not None:
            await attachment.close()
        with suppress(NotFound):  # it has removed itself
            await containers.remove(container_id, force=True, volumes=True, link=False)
        raise


async def _abandon(beginning: "asyncio.Task[_Begun]") -> None:
    await asyncio.wait([beginning])
    if not beginning.cancelled() and beginning.exception() is None:
        await beginning.result().let_go()


async def _feed(attachment: Attachment, given: bytes | None) -> None:
    if given is not None:
        if given:
            await attachment.write(given)
        await attachment.close_stdin()


async def _hang_up(call: Call, attachment: Attachment) -> None:
    """A client that does not read is given up, and its connection with it."""
    await attachment.dropped()
    call.request.connection.abort()


ROUTES = (stream("POST", "/containers/run", run),)
