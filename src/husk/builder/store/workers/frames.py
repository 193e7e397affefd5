"""Questions and what is said to them, as bytes of a pipe: pieces with their lengths, an empty one at the end. Pure."""

import struct
from collections.abc import Iterator

_HEAD = struct.Struct("<I")
LARGEST = 64 << 20
END = _HEAD.pack(0)


class BadFrame(ValueError):
    """A piece that is larger than any may be."""


def frame(piece: bytes) -> bytes:
    """The head of a piece; an empty piece would be the end."""
    if not 0 < len(piece) <= LARGEST:
        raise BadFrame(f"a piece of {len(piece)} bytes")
    return _HEAD.pack(len(piece))


class FramePieces:
    """Pieces out of bytes as they come."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> None:
        self._data += data

    def pieces(self) -> Iterator[bytes]:
        """Those that are whole, and an empty one for each end."""
        position = 0
        try:
            while len(self._data) - position >= _HEAD.size:
                (length,) = _HEAD.unpack_from(self._data, position)
                if length > LARGEST:
                    raise BadFrame(f"a piece of {length} bytes")
                end = position + _HEAD.size + length
                if len(self._data) < end:
                    break
                piece = bytes(memoryview(self._data)[position + _HEAD.size : end])
                position = end
                yield piece
        finally:
            if position:
                del self._data[:position]
