"""Events: what the peer did, as the core tells it."""

from msgspec import Struct

Headers = list[tuple[bytes, bytes]]


class HeadersReceived(Struct, frozen=True):
    """A request, an answer, or what follows an answer's data (`trailers`)."""

    stream: int
    headers: Headers
    trailers: bool
    ended: bool


class DataReceived(Struct, frozen=True):
    """`credit` is what it took of the stream's window: give it back when the data was taken in (`acknowledge`)."""

    stream: int
    data: bytes
    credit: int
    ended: bool


class StreamReset(Struct, frozen=True):
    stream: int
    code: int


class Writable(Struct, frozen=True):
    """The peer takes more than before, of one stream or of all: once for all that it said of this in what came."""


class GoingAway(Struct, frozen=True):
    """The peer takes no new streams; those above `last` it has not looked at."""

    last: int
    code: int
    reason: bytes


class PingAnswered(Struct, frozen=True):
    data: bytes


class ConnectionEnded(Struct, frozen=True):
    """The peer broke the rules: the connection has to be closed once the last bytes are sent."""

    code: int
    reason: str


Event = HeadersReceived | DataReceived | StreamReset | Writable | GoingAway | PingAnswered | ConnectionEnded
