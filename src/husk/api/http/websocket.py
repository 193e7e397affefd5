"""A WebSocket after its handshake: messages both ways, on a connection that was taken from HTTP.

`websockets` knows the protocol, without I/O; it is loaded with this module, when the first client asks for it.
"""

import asyncio
import logging
from collections.abc import AsyncIterator

from websockets.datastructures import Headers
from websockets.exceptions import InvalidState
from websockets.frames import Frame, Opcode
from websockets.http11 import Request as Handshake
from websockets.http11 import Response as HandshakeResponse
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from husk.api.http.hijack import HijackedStream
from husk.api.http.request import Request

# Where the protocol tells of each connection; only its complaints are wanted.
_log = logging.getLogger(f"{__name__}.protocol")
_log.setLevel(logging.WARNING)

# How much of what has come is read before others have their turn: it may be many small frames.
_AT_ONCE = 8 << 10
# What a client may send as one message.
_LARGEST_MESSAGE = 4 << 20


def asked_for(request: Request) -> bool:
    """Tell if the client asks for a WebSocket in a way that can be accepted."""
    return _handshake(request).status_code == 101


class WebSocket:
    """One WebSocket. `async for` gives the client's messages; binary ones as bytes, the others as str."""

    def __init__(self, request: Request) -> None:
        """Answer the handshake, for which it was `asked_for`. ConnectionResetError when the client has gone."""

        self._protocol = ServerProtocol(state=OPEN, max_size=_LARGEST_MESSAGE, logger=_log)
        answer = _handshake(request)
        answer.headers["X-Request-Id"] = request.id
        self._stream = HijackedStream(request, answer.serialize())

    async def __aiter__(self) -> AsyncIterator[bytes | str]:
        parts: list[bytes] = []
        text = False
        async for data in self._read():
            self._protocol.receive_data(data)
            for frame in self._protocol.events_received():
                if not isinstance(frame, Frame) or frame.opcode not in (Opcode.BINARY, Opcode.TEXT, Opcode.CONT):
                    continue
                if frame.opcode is not Opcode.CONT:
                    text = frame.opcode is Opcode.TEXT
                if frame.data:
                    parts.append(bytes(frame.data))
                if frame.fin:
                    message = b"".join(parts)
                    parts = []
                    yield message.decode(errors="replace") if text else message
            await self._send()
            if self._protocol.close_expected():
                return
        self._protocol.receive_eof()

    async def _read(self) -> AsyncIterator[bytes]:
        """Yield the client's bytes in pieces, between which others have their turn."""
        while data := await self._stream.read():
            for at in range(0, len(data), _AT_ONCE):
                if at:
                    await asyncio.sleep(0)
                yield data[at : at + _AT_ONCE]

    async def send(self, message: bytes | str) -> None:
        """ConnectionResetError when the client has gone, or has said that it leaves."""

        try:
            if isinstance(message, str):
                self._protocol.send_text(message.encode())
            else:
                self._protocol.send_binary(message)
        except InvalidState:
            raise ConnectionResetError("the client has closed the websocket") from None
        await self._send()

    async def close(self) -> None:
        if self._protocol.state is OPEN:
            self._protocol.send_close(1000)
        try:
            await self._send()
            await self._stream.finish()
        except ConnectionError:
            self._stream.abort()

    def abort(self) -> None:
        self._stream.abort()

    async def _send(self) -> None:
        for data in self._protocol.data_to_send():
            if data:  # an empty one asks to close, which `close` does
                await self._stream.write(data)


def _handshake(request: Request) -> HandshakeResponse:
    """The answer to the handshake."""

    headers = Headers((name.decode(), value.decode("latin-1")) for name, value in request.head.headers.items())
    return ServerProtocol(logger=_log).accept(Handshake(request.raw_path.decode("latin-1"), headers))
