"""Files with holes, in the four formats that there are: where the data of an entry belongs in its file."""

from husk.storage.tar.entry import BLOCK, LARGEST_EXTENSION, TarEntry, TarError, invalid
from husk.storage.tar.header import number

# Of a header of GNU's own sparse type, and of the blocks that may follow it.
_IN_HEADER, _MORE_IN_HEADER, _REAL_SIZE = slice(386, 482), 482, slice(483, 495)
_IN_BLOCK, _MORE_IN_BLOCK = slice(0, 504), 504
_FIELD = 12


class OldMap:
    """GNU's own type: four pieces in the header, more in blocks behind it as long as there is `more`."""

    def __init__(self, header: bytes) -> None:
        self._real_size = number(header[_REAL_SIZE])
        self._numbers = _fields(header[_IN_HEADER])
        self.more = bool(header[_MORE_IN_HEADER])

    def add(self, block: bytes) -> None:
        self._numbers += _fields(block[_IN_BLOCK])
        self.more = bool(block[_MORE_IN_BLOCK])
        if len(self._numbers) > LARGEST_EXTENSION // _FIELD:
            raise TarError("archive/tar: header field too long")

    def apply(self, entry: TarEntry) -> None:
        set_sparse(entry, self._numbers, self._real_size)


class DataMap:
    """Format 1.0: lines of numbers in front of the data, in whole blocks; the first says how many pairs follow."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._blocks: list[bytes] = []
        self._ends = 0
        self._lines = 1
        self._check_room()

    @property
    def more(self) -> bool:
        return self._ends < self._lines

    def add(self, block: bytes) -> None:
        """Each block is looked at once: a map may have 2,000 of them."""
        first = not self._ends
        self._blocks.append(block)
        self._ends += block.count(b"\n")
        if first and self._ends:
            self._lines += 2 * decimal(b"".join(self._blocks).partition(b"\n")[0])
        if self.more:
            self._check_room()

    def _check_room(self) -> None:
        length = len(self._blocks) * BLOCK
        if length > LARGEST_EXTENSION or length + BLOCK > self._size:
            raise TarError("archive/tar: invalid sparse map")

    def apply(self, entry: TarEntry) -> None:
        text = b"".join(self._blocks)
        entry.size -= len(text)
        numbers = [decimal(line) for line in text.split(b"\n")[1 : self._lines]]
        set_sparse(entry, numbers, entry.real_size)


def set_sparse(entry: TarEntry, numbers: list[int], real_size: int) -> None:
    """Take a map of offsets and lengths after checking that it describes the data and the file."""
    entry.real_size = real_size
    entry.sparse = pieces = list(zip(numbers[::2], numbers[1::2], strict=False))
    position = 0
    for offset, length in pieces:
        if offset < position or length < 0:
            raise TarError("archive/tar: invalid sparse map")
        position = offset + length
    if len(numbers) % 2 or position > entry.real_size or sum(length for _, length in pieces) != entry.size:
        raise TarError("archive/tar: invalid sparse map")
    if not pieces:
        entry.sparse = None if entry.real_size == 0 else [(0, 0)]


def decimal(digits: bytes) -> int:
    if not digits.isdigit() or len(digits) > 20:
        invalid()
    return int(digits)


def _fields(fields: bytes) -> list[int]:
    return [number(fields[at : at + _FIELD]) for at in range(0, len(fields), _FIELD) if fields[at]]
