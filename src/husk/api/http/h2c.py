"""A client's way from HTTP/1.1 to HTTP/2 on its connection: `Upgrade: h2c`, as the sessions of builds ask for it.

After the answer 101 the bytes are HTTP/2's, and the side that asked serves: whoever speaks it gets them as a stream.
HTTP/2 without that question is a request of its own kind, for a server that takes it (`begin`); a client of one that
does not is told so in HTTP/2's own words.
"""

from husk.api.http.hijack import HijackedStream
from husk.api.http.parser import PREFACE, RequestHead
from husk.api.http.request import Request

_SWITCHING = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n"

_SETTINGS, _GOAWAY = 4, 7
_HTTP_1_1_REQUIRED = 0xD


def _frame(kind: int, payload: bytes) -> bytes:
    """A frame of HTTP/2 about the connection as a whole."""
    return len(payload).to_bytes(3, "big") + bytes((kind, 0)) + bytes(4) + payload


# The answer to HTTP/2's own beginning: no settings, and then the reason, which names the protocol to use.
GO_AWAY = _frame(_SETTINGS, b"") + _frame(
    _GOAWAY, bytes(4) + _HTTP_1_1_REQUIRED.to_bytes(4, "big") + b"this API is served over HTTP/1.1"
)


# The part of HTTP/2's beginning that looks like the head of a request.
_HEAD_OF_PREFACE = PREFACE[:18]


def preface() -> RequestHead:
    """HTTP/2's beginning as the head of a request, which it looks like."""
    return RequestHead(b"PRI", b"*", True, {})


def begin(request: Request) -> HijackedStream:
    """Take a connection that began with HTTP/2: its bytes, from the first."""
    return HijackedStream(request, b"", _HEAD_OF_PREFACE)


def asked_for(request: Request) -> bool:
    """Tell if the client wants to go on in HTTP/2. As with dockerd, `Upgrade` alone says so, without `Connection`."""
    return request.header("upgrade").strip().lower() == "h2c"


def upgrade(request: Request, fields: bytes = b"") -> HijackedStream:
    """Answer 101; the connection's bytes are HTTP/2's from now on."""
    # Whoever speaks HTTP/2 reads what is behind the head as well.
    return HijackedStream(request, _SWITCHING + fields + request.id_field + b"\r\n", patient=False)
