"""The bounds of the frames of a zstd stream, told from its bytes without decompressing any of them.

`zstandard` takes the end of its input for the end of the data, in the middle of a frame too.
"""

from collections.abc import Callable

_MAGIC = 0xFD2FB528
# Frames that hold something else have sixteen magic numbers.
_SKIPPABLE = 0x184D2A50
_RLE = 1
_SIZES_OF_DICTIONARY_IDS = (0, 1, 2, 4)


class ZstdFrames:
    """Feed it all bytes of a stream, in pieces of any size; it is `whole` where no frame is half here."""

    def __init__(self) -> None:
        # Bytes to pass over, and then so many that say how to go on, which `_read` is given as a number.
        self._skip = 0
        self._need = 4
        self._read: Callable[[int], None] = self._magic
        self._begun = b""
        self._checksum = 0

    @property
    def whole(self) -> bool:
        return not self._skip and not self._begun and self._read == self._magic

    def feed(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            if self._skip:
                passed = min(self._skip, len(data) - at)
                self._skip -= passed
                at += passed
                continue
            piece = data[at : at + self._need - len(self._begun)]
            self._begun += piece
            at += len(piece)
            if len(self._begun) == self._need:
                number, self._begun = int.from_bytes(self._begun, "little"), b""
                self._read(number)

    def _await(self, skip: int, need: int, read: Callable[[int], None]) -> None:
        self._skip, self._need, self._read = skip, need, read

    def _magic(self, number: int) -> None:
        if number == _MAGIC:
            self._await(0, 1, self._descriptor)
        elif number & ~0xF == _SKIPPABLE:
            self._await(0, 4, self._skippable)

    def _skippable(self, size: int) -> None:
        self._await(size, 4, self._magic)

    def _descriptor(self, flags: int) -> None:
        single = flags >> 5 & 1
        self._checksum = 4 * (flags >> 2 & 1)
        window = 1 - single
        content = 1 << (flags >> 6) if flags >> 6 else single
        self._await(window + _SIZES_OF_DICTIONARY_IDS[flags & 3] + content, 3, self._block)

    def _block(self, header: int) -> None:
        size = 1 if header >> 1 & 3 == _RLE else header >> 3
        if header & 1:
            self._await(size + self._checksum, 4, self._magic)
        else:
            self._await(size, 3, self._block)
