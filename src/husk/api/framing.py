"""How do bytes of a container travel to a client? Takes bytes, returns bytes; knows no connection.

With a TTY they travel as they are. Without, stdout and stderr share one connection in frames: a byte for the stream,
three zero bytes, the length in four bytes (big endian), then the data.
"""

from collections.abc import Iterable
from struct import Struct

from husk.engine.logs.read import LogRecord

RAW_STREAM = "application/vnd.docker.raw-stream"
MULTIPLEXED_STREAM = "application/vnd.docker.multiplexed-stream"

_HEADER = Struct(">BxxxL").pack


def frame(stream: int, data: bytes) -> bytes:
    return _HEADER(stream, len(data)) + data


class LogEncoder:
    """Log records as a client asked for them: framed or raw, with or without the time before each line."""

    def __init__(self, *, multiplexed: bool, timestamps: bool, attributes: bytes = b"") -> None:
        self._multiplexed = multiplexed
        self._timestamps = timestamps
        self._attributes = attributes  # what parts the time from the line where the client asks for details
        self._continued = {1: False, 2: False}

    def encode(self, records: Iterable[LogRecord]) -> bytes:
        pieces: list[bytes] = []
        for record in records:
            prefix = self._prefix(record) if self._timestamps or self._attributes else b""
            if self._multiplexed:
                pieces.append(_HEADER(record.stream, len(prefix) + len(record.data)))
            if prefix:
                pieces.append(prefix)
            pieces.append(record.data)
        return b"".join(pieces)

    def _prefix(self, record: LogRecord) -> bytes:
        # The rest of a long line is not a line of its own: a second time in its middle would be noise.
        continued, self._continued[record.stream] = self._continued[record.stream], record.partial
        if continued:
            return b""
        return (record.timestamp + b" " if self._timestamps else b"") + self._attributes
