"""One header of an archive, 512 bytes: read into an entry, or written for a file."""

import struct
import tarfile
import zlib
from functools import lru_cache

import msgspec

from husk.storage.tar.entry import (
    BLOCK,
    BLOCK_DEVICE,
    CHARACTER,
    DIRECTORY,
    FIFO,
    HARD_LINK,
    REGULAR,
    SYMLINK,
    TarEntry,
    TarError,
    invalid,
)

# Of POSIX, with its version.
_MAGIC = b"ustar\x0000"
_HEADER = struct.Struct("100s8s8s8s12s12s8sc100s8s")
_PREFIX_BEGINS = 345
_MAJOR, _MINOR, _PREFIX = slice(329, 337), slice(337, 345), slice(_PREFIX_BEGINS, 500)
_PLAIN_HEADER = struct.Struct("100s8s8s8s12s12s8sc100s8s247x")
_CHECK = slice(148, 156)
_PLAIN_KINDS = (REGULAR, HARD_LINK, SYMLINK, DIRECTORY, FIFO)


class TarMember(msgspec.Struct):
    """The facts that are to be written about a file. `pax` has those that a plain header has no room for."""

    name: str
    kind: bytes = REGULAR
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    size: int = 0
    mtime: int = 0
    link: str = ""
    major: int = 0
    minor: int = 0
    pax: dict[str, str] = {}


def parse_header(block: bytes) -> TarEntry:
    """One 512-byte header without what extensions add."""
    name, mode, uid, gid, size, mtime, check, kind, link, magic = _HEADER.unpack_from(block)
    # The field of the sum counts as blanks; some old programs added signed characters.
    claimed, total = number(check), _sum(block) - _sum(check) + 8 * 32
    if claimed != total and claimed != total - 256 * sum(byte > 127 for byte in block):
        invalid()
    name = name.partition(b"\0")[0]
    # GNU tar uses the prefix's place for other things and leaves a blank after "ustar".
    if magic == _MAGIC and block[_PREFIX_BEGINS]:
        name = block[_PREFIX].partition(b"\0")[0] + b"/" + name
    entry = TarEntry(
        name, kind, _usual(mode) & 0o7777, _usual(uid), _usual(gid), number(size), _usual(mtime) * 10**9,
        link.partition(b"\0")[0] if link[0] else b"",
    )  # fmt: skip
    if entry.size < 0 or entry.uid < 0 or entry.gid < 0:
        invalid()
    if kind in (CHARACTER, BLOCK_DEVICE):
        entry.major, entry.minor = number(block[_MAJOR]), number(block[_MINOR])
    return entry


def _sum(block: bytes) -> int:
    """Of all bytes of a block or less. The low half of Adler's checksum is one more than the sum of the bytes if that
    is small, as for 256 of them or 512 letters; to add them up in Python would take longer than all else done here."""
    if block.isascii():
        return (zlib.adler32(block) & 0xFFFF) - 1
    return (zlib.adler32(block[:256]) & 0xFFFF) + (zlib.adler32(block[256:]) & 0xFFFF) - 2


def is_tar(head: bytes) -> bool:
    """Tell if a stream that begins so begins with a tar's header: a file's name first, which may look like anything."""
    if len(head) < BLOCK:
        return False
    try:
        parse_header(head[:BLOCK])
    except TarError:
        return False
    return True


def number(text: bytes) -> int:
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
            invalid()


# For modes, owners and times, of which an archive has few that differ.
_usual = lru_cache(maxsize=512)(number)


def plain_header(member: TarMember) -> bytes:
    """An ordinary entry's header, as `tarfile` makes it at many times the cost; empty if it needs more than one."""
    name = member.name + "/" if member.kind == DIRECTORY and not member.name.endswith("/") else member.name
    if (
        member.kind not in _PLAIN_KINDS
        or member.pax
        or not (name.isascii() and member.link.isascii() and len(name) <= 100 and len(member.link) <= 100)
        or not (0 <= member.uid < 8**7 and 0 <= member.gid < 8**7)
        or not (0 <= member.size < 8**11 and 0 <= member.mtime < 8**11)
    ):
        return b""
    return _block(
        name, member.mode, member.uid, member.gid, member.size, member.mtime, member.kind, member.link.encode()
    )


def any_header(member: TarMember) -> bytes:
    """Any entry's header, with another one before it that has what a plain one has no room for."""
    return plain_header(member) or _pax_header(member)


def _pax_header(member: TarMember) -> bytes:
    info = tarfile.TarInfo(member.name)
    info.type, info.linkname, info.size = member.kind, member.link, member.size
    info.mode, info.uid, info.gid, info.mtime = member.mode, member.uid, member.gid, member.mtime
    info.devmajor, info.devminor, info.pax_headers = member.major, member.minor, member.pax
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def file_header(name: str, mode: int, uid: int, gid: int, size: int, mtime: int) -> bytes:
    """The same for a plain file without attributes, by far the most frequent entry."""
    if len(name) > 100 or not name.isascii() or not (uid < 8**7 and gid < 8**7 and size < 8**11 and 0 <= mtime < 8**11):
        return b""
    return _block(name, mode, uid, gid, size, mtime, b"0", b"")


def root_file_header(name: str, size: int) -> bytes:
    """A plain file of root's, of any size, and of no time: as archives of images have them."""

    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o644
    return member.tobuf(tarfile.GNU_FORMAT)


def _block(name: str, mode: int, uid: int, gid: int, size: int, mtime: int, kind: bytes, link: bytes) -> bytes:
    block = _PLAIN_HEADER.pack(
        name.encode(), _octal(mode & 0o7777), _octal(uid), _octal(gid), b"%011o" % size, b"%011o" % mtime,
        b"        ", kind, link, _MAGIC,
    )  # fmt: skip
    return b"%b%06o\0 %b" % (block[: _CHECK.start], _sum(block), block[_CHECK.stop :])


@lru_cache(maxsize=512)
def _octal(number: int) -> bytes:
    """For modes and owners, of which a tree has few that differ."""
    return b"%07o" % number
