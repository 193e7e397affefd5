"""Attaching over a WebSocket, for clients that cannot take a connection from HTTP, such as browsers.

The container's output comes as binary messages, as it is: both streams in one, without frames around them.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from husk.aio.tasks import Tasks
from husk.api.calls.call import Call
from husk.api.calls.router import stream
from husk.api.http.response import Answer, Unanswered
from husk.api.routes.console import pass_on
from husk.api.streams.closing import closing
from husk.api.streams.detach import DetachMatcher, parse_keys
from husk.api.versioning import Version
from husk.engine.containers.attach import Attachment
from husk.errors import InvalidParameter

if TYPE_CHECKING:
    from husk.api.http.websocket import WebSocket

Send = Callable[[bytes], Awaitable[None]]

# Before, a WebSocket was attached to everything whatever the query said.
WITH_CHOICE = Version(1, 42)
# Before, output came as text, whatever it was.
WITH_BYTES = Version(1, 28)


async def attach(call: Call) -> Answer:
    # A door: the library of this protocol is not loaded with the other operations of containers.
    from husk.api.http.websocket import WebSocket, asked_for

    keys = parse_keys(call.text("detachKeys"))
    call.engine.containers.find(call.argument)
    if not asked_for(call.request):
        raise InvalidParameter("websocket: the client is not using the websocket protocol")
    everything = call.version < WITH_CHOICE
    attachment = await call.engine.containers.attach(
        call.argument,
        stdin=everything or call.flag("stdin"),
        stdout=everything or call.flag("stdout"),
        stderr=everything or call.flag("stderr"),
        logs=call.flag("logs"),
        stream=call.flag("stream"),
    )
    try:
        socket = WebSocket(call.request)
        send = socket.send if call.version >= WITH_BYTES else partial(_send_text, socket)
        try:
            await _converse(socket, attachment, send, DetachMatcher(keys) if attachment.tty else None)
            await socket.close()
        except BaseException:
            socket.abort()
            raise
    finally:
        await attachment.close()
    return Unanswered()


async def _converse(socket: "WebSocket", attachment: Attachment, send: Send, detach: DetachMatcher | None) -> None:
    """Carry bytes both ways until the output ends, the client closes, or the user detaches."""
    tasks = Tasks()
    output = tasks.spawn(_send(attachment, send), "websocket output", awaited=True)
    input = tasks.spawn(_receive(socket, attachment, detach), "websocket input", awaited=True)
    dropped = tasks.spawn(attachment.dropped(), "websocket dropped", awaited=True)
    try:
        done, _ = await asyncio.wait({output, input, dropped}, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    except ConnectionError:
        pass  # the client has gone
    finally:
        await tasks.cancel_all()


async def _send(attachment: Attachment, send: Send) -> None:
    async with closing(attachment.output()) as output:
        async for _, data in output:
            await send(data)


async def _send_text(socket: "WebSocket", data: bytes) -> None:
    await socket.send(data.decode(errors="replace"))


async def _receive(socket: "WebSocket", attachment: Attachment, detach: DetachMatcher | None) -> None:
    async for message in socket:
        data = message.encode() if isinstance(message, str) else message
        if await pass_on(data, attachment, detach):
            return


ROUTES = (stream("GET", "/containers/{id}/attach/ws", attach),)
