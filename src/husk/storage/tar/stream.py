"""What does a tar archive say? Headers in, entries out: ustar, pax, GNU long names, the four sparse formats.

No input or output here beyond `TarStream`, which reads from a sequence of buffers and writes entries to files. Names
are bytes, as the kernel takes them. Nothing is trusted: a number that does not fit, a name that leaves the root or a
damaged header raises TarError.
"""

import os
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import NoReturn

BLOCK = 512
# Of POSIX, with its version.
MAGIC = b"ustar\x0000"
# What one header may make us hold in memory; Go's archive/tar, which Docker uses, has the same limit.
_MAX_SPECIAL = 1 << 20
# What is worth moving without a copy; a smaller file is in the buffers anyway.
LARGE = 1 << 17

REGULAR, HARD_LINK, SYMLINK, CHARACTER, BLOCK_DEVICE, DIRECTORY, FIFO = (b"%d" % digit for digit in range(7))
_PLAIN = frozenset((b"0", b"\0", b"7"))
_WITHOUT_DATA = frozenset((HARD_LINK, SYMLINK, CHARACTER, BLOCK_DEVICE, DIRECTORY, FIFO))
_GNU_LONG_NAME, _GNU_LONG_LINK, _GNU_SPARSE = b"L", b"K", b"S"
_PAX, _PAX_SOLARIS, _PAX_GLOBAL = b"x", b"X", b"g"

_HEADER = struct.Struct("100s8s8s8s12s12s8sc100s8s32s32s8s8s155s12x")
_ZEROS = bytes(BLOCK)
_XATTR = b"SCHILY.xattr."


class TarError(Exception):
    """The archive is damaged, or asks for something that no archive may ask for."""


class Entry:
    """One thing in the archive; `size` bytes of data follow it in the stream.

    No dataclass: the module that makes those would take a quarter of the worker's time to start.
    """

    __slots__ = (
        "gid", "kind", "link", "major", "minor", "mode", "mtime_ns", "name", "real_size", "size", "sparse", "uid",
        "xattrs",
    )  # fmt: skip

    def __init__(
        self, name: bytes, kind: bytes, mode: int, uid: int, gid: int, size: int, mtime_ns: int, link: bytes
    ) -> None:
        self.name = name
        self.kind = kind
        self.mode = mode
        self.uid = uid
        self.gid = gid
        self.size = size
        self.mtime_ns = mtime_ns
        self.link = link
        self.major = 0
        self.minor = 0
        self.xattrs: list[tuple[str, bytes]] = []
        # Where the data belongs in the file, and the file's full size; None for an ordinary file.
        self.sparse: list[tuple[int, int]] | None = None
        self.real_size = 0


class TarStream:
    """The archive's bytes, out of one buffer after the other; `next_buffer` returns an empty one at the end, once.

    `hand_over`, where the source can do that, moves what follows the buffers into a file without a look at it: at most
    so many bytes into this descriptor, returning how many it has moved.
    """

    def __init__(
        self, next_buffer: Callable[[], memoryview], hand_over: Callable[[int, int], int] | None = None
    ) -> None:
        self._next = next_buffer
        self._hand_over = hand_over
        self._view = memoryview(b"")
        self._at = 0
        self._end = 0
        self._ended = False

    def take(self, count: int) -> bytes:
        """The next `count` bytes; fewer only at the end."""
        at = self._at
        if at + count <= self._end:
            self._at = at + count
            return bytes(self._view[at : at + count])
        return b"".join(bytes(piece) for piece in self.pieces(count, exact=False))

    def pieces(self, count: int, exact: bool = True) -> Iterator[memoryview]:
        """The next `count` bytes, in pieces that are valid until the following one is asked for."""
        while count > 0:
            at = self._at
            available = self._end - at
            if available <= 0:
                if not self._refill():
                    if exact:
                        truncated()
                    return
                continue
            if available > count:
                available = count
            self._at = at + available
            count -= available
            yield self._view[at : at + available]

    def write_to(self, fd: int, count: int) -> None:
        """Write the next `count` bytes to a file."""
        available = self._end - self._at
        if self._hand_over is not None and count - available >= LARGE:
            for piece in self.pieces(available):
                _write(fd, piece)
            count -= available
            while count and (moved := self._hand_over(fd, count)):
                count -= moved
        for piece in self.pieces(count):
            _write(fd, piece)

    def skip(self, count: int) -> None:
        available = self._end - self._at
        if count <= available:
            self._at += count
            return
        for _ in self.pieces(count):
            pass

    def drain(self) -> None:
        """Read to the end: what follows the archive's end mark still belongs to the digest."""
        while self._refill():
            pass

    def _refill(self) -> bool:
        if self._ended:
            return False
        self._view = self._next()
        self._at = 0
        self._end = len(self._view)
        self._ended = self._end == 0
        return not self._ended


def _write(fd: int, data: memoryview) -> None:
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, data[written:])


def entries(stream: TarStream, needs_end: bool = False) -> Iterator[Entry]:
    """The archive's entries; the consumer takes exactly `entry.size` bytes from `stream` before it asks for the next.

    `needs_end`: refuse an archive that stops without its end mark, because the stream cannot tell that it was cut off.
    """
    shared: dict[bytes, bytes] = {}
    while (entry := _next_entry(stream, shared, needs_end)) is not None:
        size = entry.size
        padding = -size % BLOCK
        if entry.sparse is not None and not entry.sparse:
            _read_sparse_map(stream, entry)
        yield entry
        if padding:
            stream.skip(padding)


def _next_entry(stream: TarStream, shared: dict[bytes, bytes], needs_end: bool) -> Entry | None:
    """Read headers up to and including one that is a real entry; extensions on the way are applied to it."""
    records: dict[bytes, bytes] = {}
    long_name = long_link = b""
    while True:
        block = stream.take(BLOCK)
        if len(block) < BLOCK:
            if block or records or long_name or long_link or needs_end:
                truncated()
            return None
        if block == _ZEROS:
            return None
        entry = parse_header(block)
        kind = entry.kind
        if kind in (_PAX, _PAX_SOLARIS):
            records = parse_pax(_special(stream, entry))
        elif kind == _PAX_GLOBAL:
            shared.update(parse_pax(_special(stream, entry)))
        elif kind == _GNU_LONG_NAME:
            long_name = _special(stream, entry).split(b"\0", 1)[0]
        elif kind == _GNU_LONG_LINK:
            long_link = _special(stream, entry).split(b"\0", 1)[0]
        else:
            break
    if long_name:
        entry.name = long_name
    if long_link:
        entry.link = long_link
    if shared:
        records = {**shared, **records}
    if records:
        apply_pax(entry, records)
    if kind in _PLAIN:
        # Before POSIX a directory was a file whose name ends with a slash.
        entry.kind = DIRECTORY if kind == b"\0" and entry.name.endswith(b"/") else REGULAR
    elif kind == _GNU_SPARSE:
        entry.kind = REGULAR
        _read_old_sparse(stream, entry, block)
    elif kind not in _WITHOUT_DATA:
        raise TarError(f"unhandled tar header type {kind!r} of {_text(entry.name)}")
    if entry.kind in _WITHOUT_DATA:
        entry.size = 0
    if b"\0" in entry.name or b"\0" in entry.link:
        raise TarError(f"archive entry {_text(entry.name)} has a name with a null byte")
    return entry


def parse_header(block: bytes) -> Entry:
    """One 512-byte header without what extensions add."""
    (name, mode, uid, gid, size, mtime, check, kind, link, magic, _, _, major, minor, prefix) = _HEADER.unpack(block)
    # The sum counts its own field as blanks. Some old programs added signed characters.
    unsigned = _sum(block) - sum(check) + 256
    claimed = _number(check)
    if claimed != unsigned and claimed != unsigned - 256 * sum(byte > 127 for byte in block):
        raise TarError("archive/tar: invalid tar header")
    name = name.split(b"\0", 1)[0]
    # GNU tar uses the prefix's place for other things and leaves a blank after "ustar".
    if prefix[0] and magic == MAGIC:
        name = prefix.split(b"\0", 1)[0] + b"/" + name
    entry = Entry(
        name, kind, _number(mode) & 0o7777, _number(uid), _number(gid), _number(size), _number(mtime) * 10**9,
        link.split(b"\0", 1)[0] if link[0] else b"",
    )  # fmt: skip
    if entry.size < 0 or entry.uid < 0 or entry.gid < 0:
        raise TarError("archive/tar: invalid tar header")
    if kind in (CHARACTER, BLOCK_DEVICE):
        entry.major, entry.minor = _number(major), _number(minor)
    return entry


def _sum(block: bytes) -> int:
    """Of all bytes of a block. The low half of Adler's checksum is one more than the sum of the bytes, exactly so for
    up to 256 of them; adding them up in Python would take longer than all else that is done to a header."""
    return (zlib.adler32(block[:256]) & 0xFFFF) + (zlib.adler32(block[256:]) & 0xFFFF) - 2


def parse_pax(data: bytes) -> dict[bytes, bytes]:
    """The records of a pax header: `length key=value`, newline."""
    records: dict[bytes, bytes] = {}
    sparse: list[bytes] = []
    while data:
        digits, blank, _ = data[:20].partition(b" ")
        if not blank or not digits.isdigit():
            raise TarError("archive/tar: invalid tar header")
        length = int(digits)
        record = data[len(digits) + 1 : length]
        key, equals, value = record.partition(b"=")
        if length > len(data) or not record.endswith(b"\n") or not equals or not key:
            raise TarError("archive/tar: invalid tar header")
        value = value[:-1]
        data = data[length:]
        # Sparse format 0.0 repeats these two keys; 0.1 puts the same numbers into one record.
        if key in (b"GNU.sparse.offset", b"GNU.sparse.numbytes"):
            sparse.append(value)
        else:
            records[key] = value
    if sparse:
        records[b"GNU.sparse.map"] = b",".join(sparse)
    return records


def apply_pax(entry: Entry, records: dict[bytes, bytes]) -> None:
    """Let a pax header's records take the place of the fields in `entry`."""
    for key, value in records.items():
        if key == b"path":
            entry.name = value or entry.name
        elif key == b"linkpath":
            entry.link = value or entry.link
        elif key == b"size":
            entry.size = _decimal(value)
        elif key == b"uid":
            entry.uid = _decimal(value)
        elif key == b"gid":
            entry.gid = _decimal(value)
        elif key == b"mtime":
            entry.mtime_ns = _seconds(value)
        elif key.startswith(_XATTR):
            entry.xattrs.append((key[len(_XATTR) :].decode("utf-8", "surrogateescape"), value))
    if b"GNU.sparse.map" in records:
        numbers = [_decimal(number) for number in records[b"GNU.sparse.map"].split(b",") if number]
        entry.name = records.get(b"GNU.sparse.name", entry.name)
        _set_sparse(entry, numbers, records.get(b"GNU.sparse.size", b""))
    elif records.get(b"GNU.sparse.major") == b"1":
        entry.name = records.get(b"GNU.sparse.name", entry.name)
        entry.real_size = _decimal(records.get(b"GNU.sparse.realsize", b""))
        entry.sparse = []  # the map comes first in the data


def clean_name(name: bytes) -> bytes:
    """A name as a path relative to the root, without `.` and `..`; one that leads out of the root is refused."""
    if b"//" not in name and b"/." not in name and name[:1] not in (b"/", b"."):
        return name.rstrip(b"/")
    parts: list[bytes] = []
    for part in name.split(b"/"):
        if part == b"..":
            if not parts:
                raise TarError(f"invalid archive: {_text(name)} is outside of the root directory")
            parts.pop()
        elif part and part != b".":
            parts.append(part)
    return b"/".join(parts)


def truncated() -> NoReturn:
    raise TarError("unexpected EOF")


def _special(stream: TarStream, entry: Entry) -> bytes:
    if entry.size > _MAX_SPECIAL:
        raise TarError("archive/tar: header field too long")
    data = stream.take(entry.size)
    if len(data) < entry.size:
        truncated()
    stream.skip(-entry.size % BLOCK)
    return data


def _read_old_sparse(stream: TarStream, entry: Entry, block: bytes) -> None:
    """GNU's own sparse type: four pieces in the header, more in blocks behind it."""
    real_size = b"%d" % _number(block[483:495])
    numbers = _sparse_fields(block[386:482])
    more = block[482]
    while more:
        extension = stream.take(BLOCK)
        if len(extension) < BLOCK:
            truncated()
        numbers += _sparse_fields(extension[:504])
        more = extension[504]
        if len(numbers) > _MAX_SPECIAL // 12:
            raise TarError("archive/tar: header field too long")
    _set_sparse(entry, numbers, real_size)


def _sparse_fields(fields: bytes) -> list[int]:
    return [_number(fields[at : at + 12]) for at in range(0, len(fields), 12) if fields[at]]


def _read_sparse_map(stream: TarStream, entry: Entry) -> None:
    """Sparse format 1.0: lines of numbers in front of the data, padded to whole blocks."""
    text = b""
    wanted = 1
    while text.count(b"\n") < wanted:
        if len(text) > _MAX_SPECIAL or len(text) + BLOCK > entry.size:
            raise TarError("archive/tar: invalid sparse map")
        text += stream.take(BLOCK)
        if wanted == 1 and b"\n" in text:
            wanted = 1 + 2 * _decimal(text.split(b"\n", 1)[0])
    entry.size -= len(text)
    _set_sparse(entry, [_decimal(line) for line in text.split(b"\n")[1:wanted]], b"%d" % entry.real_size)


def _set_sparse(entry: Entry, numbers: list[int], real_size: bytes) -> None:
    """Take a map of offsets and lengths after checking that it describes the data and the file."""
    entry.real_size = _decimal(real_size)
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


def _number(text: bytes) -> int:
    """A header's number: octal digits, or GNU's binary form for those that need more room."""
    if text[0] & 0x80:
        value = int.from_bytes(text, "big")
        bits = 8 * len(text)
        return value - (1 << bits) if text[0] & 0x40 else value - (1 << (bits - 1))
    try:
        return int(text.strip(b" \0") or b"0", 8)
    except ValueError:
        # Some programs end a field with a null and leave rubbish behind it.
        try:
            return int(text.split(b"\0", 1)[0].strip() or b"0", 8)
        except ValueError:
            raise TarError("archive/tar: invalid tar header") from None


def _decimal(text: bytes) -> int:
    if not text.isdigit() or len(text) > 20:
        raise TarError("archive/tar: invalid tar header")
    return int(text)


def _seconds(text: bytes) -> int:
    """A pax time (decimal fraction of seconds, perhaps negative) in nanoseconds, without the rounding of floats."""
    whole, _, fraction = text.removeprefix(b"-").partition(b".")
    nanoseconds = _decimal(whole or b"0") * 10**9 + _decimal(fraction[:9].ljust(9, b"0"))
    return -nanoseconds if text.startswith(b"-") else nanoseconds


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
