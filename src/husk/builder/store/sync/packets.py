"""The messages of a file sync, as bytes: fsutil's Packet and Stat, each behind the five bytes that gRPC has there.

Only these two are read, by hand: a context of 20,000 files is 60,000 packets. Fields may come in any order, unknown
ones are passed over.

Modes of files: Go's bits, as clients send them, in the system's.
"""

import os
import stat as modes
import struct
from functools import lru_cache
from typing import NamedTuple

from husk.text.patterns import pattern

STAT, REQUEST, DATA, FIN, ERROR = range(5)

# What the other side's gRPC takes, and ours.
LARGEST_MESSAGE = 16 << 20
HEAD_SIZE = 5
# How nearly all messages with data begin.
DATA_BEGINS = b"\x08\x02"
_HEAD = struct.Struct(">BI")
# Of nearly all Stats what follows the path: mode, owner, group, size and time, in this order and each at most once.
_NUMBER = rb"([\x80-\xff]{0,9}[\x00-\x7f])"
_USUAL_STAT = pattern(b"".join(b"(?:\\x%02x%b)?" % (tag, _NUMBER) for tag in (0x10, 0x18, 0x20, 0x28, 0x30)))

# Go's bits of a mode that tell what a file is (io/fs.FileMode).
MODE_DIRECTORY = 1 << 31
MODE_SYMLINK = 1 << 27
MODE_DEVICE = 1 << 26
MODE_PIPE = 1 << 25
MODE_SOCKET = 1 << 24
MODE_SETUID = 1 << 23
MODE_SETGID = 1 << 22
MODE_CHARACTER = 1 << 21
MODE_STICKY = 1 << 20
MODE_IRREGULAR = 1 << 19
MODE_KIND = MODE_DIRECTORY | MODE_SYMLINK | MODE_DEVICE | MODE_PIPE | MODE_SOCKET | MODE_CHARACTER | MODE_IRREGULAR
_WHITEOUT = (0, 0)


class SyncError(Exception):
    """The other side does not keep to the protocol, or tells of something that cannot be."""


class Stat(NamedTuple):
    """One file, with the mode in Go's bits and the time in nanoseconds."""

    path: bytes = b""
    mode: int = 0
    uid: int = 0
    gid: int = 0
    size: int = 0
    mtime: int = 0
    link: bytes = b""
    major: int = 0
    minor: int = 0
    xattrs: tuple[tuple[bytes, bytes], ...] = ()


class Packet(NamedTuple):
    """`stat` is a Stat as bytes, None where there is none; `data` is a view of the message."""

    kind: int
    stat: bytes | None
    id: int
    data: memoryview


def frame(message: bytes) -> bytes:
    return _HEAD.pack(0, len(message)) + message


def read_head(data: bytes, position: int) -> int:
    """The length of the message behind a head."""
    compressed, size = _HEAD.unpack_from(data, position)
    if compressed:
        raise SyncError("the packet is compressed")
    if size > LARGEST_MESSAGE:
        raise SyncError(f"a packet of {size} bytes is larger than {LARGEST_MESSAGE}")
    return int(size)


# --- reading ---------------------------------------------------------------------------------------------------------


def read_packet(message: bytes) -> Packet:
    kind, stat, number, data = STAT, None, 0, memoryview(b"")
    position, end = 0, len(message)
    # A packet that is nothing but a short Stat, as half of all are.
    if end > 2 and message[0] == 0x12 and message[1] == end - 2 < 0x80:
        return Packet(STAT, message[2:], 0, data)
    while position < end:
        tag, position = _varint(message, position)
        if tag == 0x08:
            kind, position = _varint(message, position)
        elif tag == 0x12:
            start, position = _span(message, position)
            stat = message[start:position]
        elif tag == 0x18:
            number, position = _varint(message, position)
        elif tag == 0x22:
            start, position = _span(message, position)
            data = memoryview(message)[start:position]
        else:
            position = _skip(message, position, tag)
    return Packet(kind, stat, number & 0xFFFFFFFF, data)


def read_data(data: bytes, start: int, stop: int) -> tuple[int, int] | None:
    """The number of the file that the message there has data for, and where its data begins; None if it is another one.

    Two of three messages are of this form, as senders write them; `read_packet` reads all forms.
    """
    if not data.startswith(DATA_BEGINS, start, stop):
        return None
    number, at = 0, start + len(DATA_BEGINS)
    if at < stop and data[at] == 0x18:
        number, at = _varint(data, at + 1)
    if at >= stop:
        return (number & 0xFFFFFFFF, stop) if at == stop else None
    if data[at] != 0x22:
        return None
    size, at = _varint(data, at + 1)
    return (number & 0xFFFFFFFF, at) if at + size == stop else None


def read_stat(message: bytes) -> Stat:
    """A Stat; this is where the first sync of a large context spends its time."""
    if len(message) > 2 and message[0] == 0x0A and (end := message[1] + 2) < 0x82:
        found = _USUAL_STAT.fullmatch(message, end)
        if found is not None and end <= len(message):
            mode, uid, gid, size, mtime = found.groups(b"\0")
            return Stat(
                message[2:end],
                _usual_number(mode) & 0xFFFFFFFF,
                _usual_number(uid) & 0xFFFFFFFF,
                _usual_number(gid) & 0xFFFFFFFF,
                _signed(_usual_number(size)),
                _signed(_time(mtime)),
            )
    return _read_any_stat(message)


def _read_any_stat(message: bytes) -> Stat:
    path = link = b""
    numbers = [0] * 10
    xattrs: list[tuple[bytes, bytes]] = []
    position, end = 0, len(message)
    try:
        while position < end:
            tag = message[position]
            position += 1
            if tag & 7 == 0 and 0x10 <= tag <= 0x48:
                value = message[position]
                position += 1
                if value > 0x7F:
                    value, position = _varint(message, position - 1)
                numbers[tag >> 3] = value
            elif tag == 0x0A:
                start, position = _span(message, position)
                path = message[start:position]
            elif tag == 0x3A:
                start, position = _span(message, position)
                link = message[start:position]
            elif tag == 0x52:
                start, position = _span(message, position)
                xattrs.append(_read_xattr(message[start:position]))
            else:
                tag, position = _varint(message, position - 1)
                position = _skip(message, position, tag)
    except IndexError:
        raise SyncError("a packet ends too early") from None
    _, _, mode, uid, gid, size, mtime, _, major, minor = numbers
    return Stat(
        path,
        mode & 0xFFFFFFFF,
        uid & 0xFFFFFFFF,
        gid & 0xFFFFFFFF,
        _signed(size),
        _signed(mtime),
        link,
        _signed(major),
        _signed(minor),
        tuple(xattrs),
    )


def _read_xattr(message: bytes) -> tuple[bytes, bytes]:
    name = value = b""
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        if tag in (0x0A, 0x12):
            start, position = _span(message, position)
            if tag == 0x0A:
                name = message[start:position]
            else:
                value = message[start:position]
        else:
            position = _skip(message, position, tag)
    return name, value


def _varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    try:
        # Nearly all are as short as this.
        if (byte := data[position]) < 0x80:
            return byte, position + 1
        if (following := data[position + 1]) < 0x80:
            return byte & 0x7F | following << 7, position + 2
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFFFFFFFFFFFFFF, position
            shift += 7
            if shift > 63:
                raise SyncError("a number in a packet has no end")
    except IndexError:
        raise SyncError("a packet ends too early") from None


def _time(text: bytes) -> int:
    """The same for a time of these decades in nanoseconds, which has nine bytes."""
    if len(text) != 9:
        return _varint(text, 0)[0]
    a, b, c, d, e, f, g, h, i = text
    low = a & 0x7F | (b & 0x7F) << 7 | (c & 0x7F) << 14 | (d & 0x7F) << 21
    return low | ((e & 0x7F) | (f & 0x7F) << 7 | (g & 0x7F) << 14 | (h & 0x7F) << 21 | i << 28) << 28


@lru_cache(maxsize=512)
def _usual_number(text: bytes) -> int:
    """For modes, owners and sizes, of which a directory has few that differ."""
    return _varint(text, 0)[0]


def _span(data: bytes, position: int) -> tuple[int, int]:
    """Return the positions at which a field of bytes begins and ends."""
    size, start = _varint(data, position)
    end = start + size
    if end > len(data):
        raise SyncError("a packet ends too early")
    return start, end


def _skip(data: bytes, position: int, tag: int) -> int:
    wire = tag & 7
    if wire == 0:
        return _varint(data, position)[1]
    if wire == 2:
        return _span(data, position)[1]
    if wire not in (1, 5):
        raise SyncError(f"a packet has a field of unknown form {wire}")
    end = position + (8 if wire == 1 else 4)
    if end > len(data):
        raise SyncError("a packet ends too early")
    return end


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


# --- writing ---------------------------------------------------------------------------------------------------------


def request(number: int) -> bytes:
    """Ask for a file's data."""
    return frame(b"\x08\x01" + (b"\x18" + _number(number) if number else b""))


def fin() -> bytes:
    return frame(b"\x08\x03")


def error(text: str) -> bytes:
    data = text.encode("utf-8", "replace")
    return frame(b"\x08\x04\x22" + _number(len(data)) + data)


def data_head(number: int, size: int) -> bytes:
    """Return the head before `size` bytes of a file; it stands alone at the file's end, with a size of 0."""
    body = b"\x08\x02" + (b"\x18" + _number(number) if number else b"")
    if size:
        body += b"\x22" + _number(size)
    return _HEAD.pack(0, len(body) + size) + body


def stat(entry: Stat) -> bytes:
    """Tell of a file."""
    message = write_stat(entry)
    return frame(b"\x12" + _number(len(message)) + message)


def end_of_stats() -> bytes:
    return frame(b"")


def write_stat(entry: Stat) -> bytes:
    parts = [b"\x0a", _number(len(entry.path)), entry.path]
    for field, value in zip((0x10, 0x18, 0x20, 0x28, 0x30), entry[1:6], strict=True):
        if value:
            parts += (bytes((field,)), _number(value))
    if entry.link:
        parts += (b"\x3a", _number(len(entry.link)), entry.link)
    for field, value in ((0x40, entry.major), (0x48, entry.minor)):
        if value:
            parts += (bytes((field,)), _number(value))
    for name, content in entry.xattrs:
        pair = b"\x0a" + _number(len(name)) + name + b"\x12" + _number(len(content)) + content
        parts += (b"\x52", _number(len(pair)), pair)
    return b"".join(parts)


def _number(value: int) -> bytes:
    value &= 0xFFFFFFFFFFFFFFFF
    if value < 0x80:
        return bytes((value,))
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


@lru_cache(maxsize=512)
def permissions(mode: int) -> int:
    """A mode of Go's in the system's bits, without the kind."""
    bits = mode & 0o777
    if mode & MODE_SETUID:
        bits |= modes.S_ISUID
    if mode & MODE_SETGID:
        bits |= modes.S_ISGID
    if mode & MODE_STICKY:
        bits |= modes.S_ISVTX
    return bits


def special_kind(stat: Stat) -> int:
    """The kind of a pipe or a device, in the system's bits."""
    kind = stat.mode & MODE_KIND
    if kind == MODE_PIPE:
        return modes.S_IFIFO
    if kind == MODE_DEVICE | MODE_CHARACTER:
        if (stat.major, stat.minor) == _WHITEOUT:
            raise SyncError(f"{os.fsdecode(stat.path)!r} is an overlay's whiteout")
        return modes.S_IFCHR
    if kind == MODE_DEVICE:
        return modes.S_IFBLK
    raise SyncError(f"{os.fsdecode(stat.path)!r} is of no known kind (mode {stat.mode:#o})")


def device(stat: Stat) -> int:
    """The number of a device; 0 for a pipe."""
    if stat.mode & MODE_PIPE:
        return 0
    if not (0 <= stat.major < 1 << 12 and 0 <= stat.minor < 1 << 20):
        raise SyncError(f"{os.fsdecode(stat.path)!r} has no device's number")
    return os.makedev(stat.major, stat.minor)


def system_mode(stat: Stat) -> int:
    """Return the mode that the system shows for a file that was made as the client told."""
    kind = stat.mode & MODE_KIND
    if not kind:
        return modes.S_IFREG | permissions(stat.mode)
    if kind & MODE_DIRECTORY:
        return modes.S_IFDIR | permissions(stat.mode)
    if kind == MODE_SYMLINK:
        return modes.S_IFLNK | 0o777
    return special_kind(stat) | permissions(stat.mode)
