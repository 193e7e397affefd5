"""The parser of archives. Bytes in, entries out: ustar, pax, GNU long names, the four sparse formats.

Nothing is read or written here. Names are bytes, as the kernel takes them. Nothing is trusted: a number that does not
fit, a damaged header or an archive that ends in the middle raises TarError.
"""

from collections.abc import Callable

from husk.storage.tar.entry import (
    BLOCK,
    BLOCK_DEVICE,
    CHARACTER,
    DIRECTORY,
    FIFO,
    HARD_LINK,
    LARGEST_EXTENSION,
    REGULAR,
    SYMLINK,
    TarEntry,
    TarError,
    invalid,
    padding,
    text,
    truncated,
)
from husk.storage.tar.header import parse_header
from husk.storage.tar.pax import apply_pax, parse_pax
from husk.storage.tar.sparse import DataMap, OldMap

_PLAIN = frozenset((b"0", b"\0", b"7"))
_WITHOUT_DATA = frozenset((HARD_LINK, SYMLINK, CHARACTER, BLOCK_DEVICE, DIRECTORY, FIFO))
_LONG_NAME, _LONG_LINK, _OLD_SPARSE = b"L", b"K", b"S"
_PAX, _PAX_SOLARIS, _PAX_GLOBAL = b"x", b"X", b"g"
_EXTENSIONS = frozenset((_LONG_NAME, _LONG_LINK, _PAX, _PAX_SOLARIS, _PAX_GLOBAL))
_ZEROS = bytes(BLOCK)
# What is said of all entries that follow is gone through for each of them.
_MOST_SHARED = 16 << 10


class Parser:
    """Give it the bytes that it `wants`, until it returns an entry or has `ended`.

    Behind an entry come `entry.size` bytes of data and `padding(entry.size)` zeros, which are not for the parser; then
    it wants the next header. As with Go's archive/tar an archive may stop behind the last byte of a file: zeros behind
    it, and the two blocks that mark the end, may be missing.
    """

    def __init__(self) -> None:
        self.wants = BLOCK
        self.ended = False
        self._step: Callable[[bytes], TarEntry | None] = self._header
        self._entry: TarEntry
        self._map: OldMap | DataMap
        # What extensions say about the next entry, and about all that follow.
        self._extended = False
        self._long_name = self._long_link = b""
        self._records: dict[bytes, bytes] = {}
        self._shared: dict[bytes, bytes] = {}

    def feed(self, data: bytes) -> TarEntry | None:
        """Take the next bytes: as many as it wants, fewer only where the archive ends."""
        if len(data) < self.wants:
            if data or self.wants != BLOCK or self._extended or self._step not in (self._header, self._second_of_end):
                truncated()
            self.ended = True
            return None
        return self._step(data)

    def _header(self, block: bytes) -> TarEntry | None:
        if block == _ZEROS:
            self._await(self._second_of_end)
            return None
        entry = parse_header(block)
        if entry.kind in _EXTENSIONS:
            self._begin_extension(entry)
            return None
        if self._extended or self._shared:
            self._extend(entry)
        # Most are files and nothing else.
        return entry if entry.kind == REGULAR and entry.sparse is None else self._judge(entry, block)

    def _second_of_end(self, block: bytes) -> None:
        if block != _ZEROS:
            invalid()
        self.ended = True

    def _begin_extension(self, entry: TarEntry) -> None:
        if entry.size > LARGEST_EXTENSION:
            raise TarError("archive/tar: header field too long")
        self._entry = entry
        self._extended = self._extended or entry.kind != _PAX_GLOBAL
        self._await(self._extension, entry.size + padding(entry.size))
        if not entry.size:
            self._extension(b"")

    def _extension(self, data: bytes) -> None:
        said = data[: self._entry.size]
        kind = self._entry.kind
        if kind == _LONG_NAME:
            self._long_name = said.split(b"\0", 1)[0]
        elif kind == _LONG_LINK:
            self._long_link = said.split(b"\0", 1)[0]
        elif kind == _PAX_GLOBAL:
            self._shared.update(parse_pax(said))
            if sum(len(key) + len(value) for key, value in self._shared.items()) > _MOST_SHARED:
                raise TarError("archive/tar: global headers are too long")
        else:
            self._records = parse_pax(said)
        self._await(self._header)

    def _extend(self, entry: TarEntry) -> None:
        entry.name = self._long_name or entry.name
        entry.link = self._long_link or entry.link
        apply_pax(entry, {**self._shared, **self._records} if self._shared else self._records)
        if b"\0" in entry.name or b"\0" in entry.link:
            raise TarError(f"archive entry {text(entry.name)} has a name with a null byte")
        self._long_name = self._long_link = b""
        self._records = {}
        self._extended = False

    def _judge(self, entry: TarEntry, block: bytes) -> TarEntry | None:
        """Find the kind of an entry, and return the entry; None while the map of a sparse file is still to come."""
        kind = entry.kind
        if kind in _PLAIN:
            # Before POSIX a directory was a file whose name ends with a slash.
            entry.kind = DIRECTORY if kind == b"\0" and entry.name.endswith(b"/") else REGULAR
        elif kind == _OLD_SPARSE:
            entry.kind = REGULAR
        elif kind not in _WITHOUT_DATA:
            raise TarError(f"unhandled tar header type {kind!r} of {text(entry.name)}")
        if entry.kind in _WITHOUT_DATA:
            entry.size = 0
        if kind == _OLD_SPARSE:
            return self._begin_map(entry, OldMap(block))
        if entry.sparse is not None and not entry.sparse:
            return self._begin_map(entry, DataMap(entry.size))
        return entry

    def _begin_map(self, entry: TarEntry, found: OldMap | DataMap) -> TarEntry | None:
        self._entry, self._map = entry, found
        if not found.more:
            found.apply(entry)
            return entry
        self._await(self._more_of_map)
        return None

    def _more_of_map(self, block: bytes) -> TarEntry | None:
        self._map.add(block)
        if self._map.more:
            return None
        self._await(self._header)
        self._map.apply(self._entry)
        return self._entry

    def _await(self, step: Callable[[bytes], TarEntry | None], size: int = BLOCK) -> None:
        self._step, self.wants = step, size
