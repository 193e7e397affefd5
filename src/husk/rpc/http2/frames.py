"""Frames of HTTP/2: cut out of the bytes that come, and put together for those that go."""

from collections.abc import Iterator
from struct import Struct as Layout

from husk.rpc.http2.errors import FRAME_SIZE_ERROR, PROTOCOL_ERROR, Http2Error

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)

END_STREAM = ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
WITH_PRIORITY = 0x20

# What settings are about.
HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE = (
    range(1, 7)
)

# The size of a payload that everyone takes, and the most that we take.
FRAME_SIZE = 16384
LARGEST_WINDOW = (1 << 31) - 1

_HEAD_SIZE = 9
# Of larger payloads a view costs less than a copy.
_VIEWED = 2048
_HEAD = Layout(">IBI")  # length and kind share the first four bytes
_SETTING = Layout(">HI")
_NUMBER = Layout(">I")

Frame = tuple[int, int, int, bytes]


class FrameReader:
    """Bytes in any pieces → frames, as (kind, flags, stream, payload)."""

    def __init__(self) -> None:
        self._rest = b""

    @property
    def waiting(self) -> int:
        """The number of bytes of an unfinished frame that are kept."""
        return len(self._rest)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Http2Error for a frame that is larger than we said we take.

        Data of one stream that comes in several frames, one behind the other, is given as one: whoever sends very many
        small messages puts each into a frame of its own.
        """
        pieces: list[bytes | memoryview] = []
        current = 0
        for part, position in self._parts(data):
            view, size = memoryview(part), len(part)
            while size - position >= _HEAD_SIZE:
                first, flags, stream = _HEAD.unpack_from(part, position)
                start = position + _HEAD_SIZE
                end = start + (first >> 8)
                if end - start > FRAME_SIZE:
                    raise Http2Error(FRAME_SIZE_ERROR, f"a frame of {end - start} bytes: {FRAME_SIZE} is the most")
                if end > size:
                    break
                position = end
                if first & 0xFF == DATA and not flags:
                    if stream != current and pieces:
                        yield DATA, 0, current & LARGEST_WINDOW, b"".join(pieces)
                        pieces = []
                    current = stream
                    pieces.append(view[start:end] if end - start > _VIEWED else part[start:end])
                    continue
                if pieces:
                    yield DATA, 0, current & LARGEST_WINDOW, b"".join(pieces)
                    pieces = []
                yield first & 0xFF, flags, stream & LARGEST_WINDOW, part[start:end]
            self._rest = part[position:]
        if pieces:
            yield DATA, 0, current & LARGEST_WINDOW, b"".join(pieces)

    def _parts(self, data: bytes) -> tuple[tuple[bytes, int], ...]:
        """List the bytes to read, and from where on: a frame that had begun is put together, the rest is not copied."""
        if not self._rest:
            return ((data, 0),)
        begun = self._rest + data[: max(0, _HEAD_SIZE - len(self._rest))]
        if len(begun) < _HEAD_SIZE:
            return ((begun, 0),)
        missing = _HEAD_SIZE + (_HEAD.unpack_from(begun)[0] >> 8) - len(self._rest)
        if missing >= len(data):
            return ((self._rest + data, 0),)
        return (self._rest + data[:missing], 0), (data, missing)


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return _HEAD.pack(len(payload) << 8 | kind, flags, stream) + payload


def head(kind: int, flags: int, stream: int, length: int) -> bytes:
    """The head of a frame, for a payload that is sent behind it."""
    return _HEAD.pack(length << 8 | kind, flags, stream)


def settings(values: dict[int, int]) -> bytes:
    return frame(SETTINGS, 0, 0, b"".join(_SETTING.pack(*item) for item in values.items()))


def read_settings(payload: bytes) -> list[tuple[int, int]]:
    if len(payload) % _SETTING.size:
        raise Http2Error(FRAME_SIZE_ERROR, "settings of a wrong length")
    return list(_SETTING.iter_unpack(payload))


def window_update(stream: int, increment: int) -> bytes:
    return frame(WINDOW_UPDATE, 0, stream, _NUMBER.pack(increment))


def reset(stream: int, code: int) -> bytes:
    return frame(RST_STREAM, 0, stream, _NUMBER.pack(code))


def go_away(last: int, code: int, reason: bytes) -> bytes:
    return frame(GOAWAY, 0, 0, _NUMBER.pack(last) + _NUMBER.pack(code) + reason)


def number(payload: bytes, what: str) -> int:
    """The payload of a frame that is one number of four bytes."""
    if len(payload) != _NUMBER.size:
        raise Http2Error(FRAME_SIZE_ERROR, f"{what} of a wrong length")
    return int(_NUMBER.unpack(payload)[0])


def without_padding(flags: int, payload: bytes) -> bytes:
    """Return the payload of a frame without its padding and its priority."""
    start, end = 0, len(payload)
    if flags & PADDED:
        if not payload:
            raise Http2Error(FRAME_SIZE_ERROR, "a padded frame without a length of its padding")
        start, end = 1, end - payload[0]
    if flags & WITH_PRIORITY:
        start += 5
    if start > end:
        raise Http2Error(PROTOCOL_ERROR, "a frame with more padding than it has room for")
    return payload[start:end]
