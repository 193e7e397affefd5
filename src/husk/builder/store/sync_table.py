"""The table of a tree, kept between two syncs, so that a client's unchanged files are neither sent nor read again.

For each file, in the order in which a client tells of them: the message in which the client told of it (as it came, so
that an unchanged one is known without being read), its path, what it looks like (`husk.builder.store.sync_table`),
what a copy of it has to know, and its place in the tar of the layer that the last copy made. Which tar that was is said
at the end. That and the places are written when there is such a tar, into the table that is there; all else never
changes.

The digest of one file's look: its kind and mode, owner, group, device, content and attributes count for it, its
name and times do not.

Contents are hashed with BLAKE3, which takes a tenth of the time of SHA-256 where the processor has no instructions for
that, and with BLAKE2b on hosts that lack the package; nobody but the cache of builds of this host sees these digests.
"""

import hashlib
import itertools
import os
import struct
from collections.abc import Sequence
from typing import BinaryIO, NamedTuple, Protocol

import msgspec

from husk.text.documents import MalformedDocument, decode

try:
    from blake3 import blake3
except ImportError:  # there is none for this processor
    blake3 = None  # type: ignore[assignment,misc]

DIGEST_SIZE = 32

_encoder = msgspec.msgpack.Encoder()


class ContentHash(Protocol):
    def update(self, data: bytes | memoryview, /) -> object: ...

    def digest(self) -> bytes: ...


def content_hash(data: bytes | memoryview = b"") -> ContentHash:
    """Make the hash for the content of a file; it has `data` already."""
    if blake3 is None:
        return hashlib.blake2b(data, digest_size=DIGEST_SIZE, usedforsecurity=False)
    return blake3(data)


def look_digest(
    mode: int, uid: int, gid: int, device: int, content: bytes, xattrs: Sequence[tuple[str, bytes]]
) -> bytes:
    """`content` is the digest of a plain file's content, the target of a link, and empty for all else. Attributes are
    ordered by name."""
    return hashlib.sha256(_encoder.encode((mode, uid, gid, device, content, xattrs))).digest()


VERSION = 3
NO_LOOK = bytes(DIGEST_SIZE)
NO_PLACE = -1
_LENGTH = struct.Struct(">I")
_BRIEF = struct.Struct("<IIIqq")
_PLACE = struct.Struct("<q")
_NOWHERE = _PLACE.pack(NO_PLACE)
_PACKED_SIZE = 512


class Brief(NamedTuple):
    """A file in the system's terms, the time in nanoseconds. Without a mode there is more to tell about it."""

    mode: int
    uid: int
    gid: int
    size: int
    mtime: int


class PackedTree(msgspec.Struct, frozen=True):
    """The tar that places are in: its digest, when it counts (`boot`), and how its entries look (`key`)."""

    blob: str
    boot: str
    key: str


class Listed(NamedTuple):
    """The facts that a copy of files needs, three lists side by side."""

    paths: list[bytes]
    briefs: list[Brief]
    places: list[int]


class _Head(msgspec.Struct):
    version: int
    entries: int
    messages: int
    paths: int
    links: int
    size: int


class SyncTable:
    """All files of a tree, lists side by side, and of those that are hard links the first name of the file."""

    def __init__(self) -> None:
        self.links: dict[bytes, bytes] = {}
        self.size = 0  # of all plain files
        self.messages: list[bytes] = []
        self.paths: list[bytes] = []
        self.looks: list[bytes] = []
        self.briefs: list[bytes] = []
        self.places: list[bytes] = []
        self.packed = bytes(_PACKED_SIZE)

    def add(self, message: bytes, path: bytes, look: bytes, brief: bytes, place: bytes = _NOWHERE) -> None:
        self.messages.append(message)
        self.paths.append(path)
        self.looks.append(look)
        self.briefs.append(brief)
        self.places.append(place)

    def __len__(self) -> int:
        return len(self.messages)


def write_table(table: SyncTable, file: BinaryIO) -> None:
    messages = b"".join(part for message in table.messages for part in (_LENGTH.pack(len(message)), message))
    paths = b"\0".join(table.paths)
    links = b"\0".join(itertools.chain.from_iterable(table.links.items()))
    head = _Head(VERSION, len(table), len(messages), len(paths), len(links), table.size)
    file.write(msgspec.json.encode(head) + b"\n")
    file.write(messages)
    file.write(paths)
    file.write(links)
    file.write(b"".join(table.looks))
    file.write(b"".join(table.briefs))
    file.write(b"".join(table.places))
    file.write(table.packed)


def pack_brief(brief: Brief) -> bytes:
    return _BRIEF.pack(*brief)


def read_listed(file: BinaryIO) -> Listed | None:
    """All files in order; None if there is more to tell about one, and if some are hard links."""
    found = _read_parts(file)
    if found is None or found.head.links:
        return None
    briefs = list(itertools.starmap(Brief, _BRIEF.iter_unpack(found.briefs)))
    places = [place for (place,) in _PLACE.iter_unpack(found.places)]
    return Listed(_paths(found), briefs, places) if all(brief.mode for brief in briefs) else None


def read_packed(file: BinaryIO) -> PackedTree | None:
    """Read the tar that the places are in; None if there is none."""
    try:
        file.seek(-_PACKED_SIZE, os.SEEK_END)
        return decode(file.read(), PackedTree)
    except (MalformedDocument, OSError):  # it is shorter than that
        return None


def write_packed(file: BinaryIO, places: Sequence[int], packed: PackedTree) -> None:
    """Note where each file is in a tar. Whoever is killed in between leaves no places at all."""
    end = file.seek(0, os.SEEK_END) - _PACKED_SIZE
    said = msgspec.json.encode(packed).ljust(_PACKED_SIZE)
    if len(said) != _PACKED_SIZE:
        raise ValueError("a tar is described by too many words")
    for data, at in (
        (bytes(_PACKED_SIZE), end),
        (b"".join(map(_PLACE.pack, places)), end - len(places) * _PLACE.size),
        (said, end),
    ):
        file.seek(at)
        file.write(data)
        file.flush()


def read_looks(file: BinaryIO) -> dict[bytes, bytes]:
    """Read the looks of all files, by their paths and in the table's order; nothing if it is not known of all."""
    found = _read_parts(file)
    if found is None:
        return {}
    known = _cut(found.looks, DIGEST_SIZE)
    return {} if NO_LOOK in known else dict(zip(_paths(found), known, strict=True))


def read_table(file: BinaryIO) -> SyncTable | None:
    """A table that was written whole; None if it was not."""
    found = _read_parts(file)
    if found is None:
        return None
    table = SyncTable()
    position, messages = 0, found.messages
    for _ in range(found.head.entries):
        start = position + _LENGTH.size
        position = start + _LENGTH.unpack_from(messages, position)[0]
        table.messages.append(messages[start:position])
    table.paths = _paths(found)
    names = found.links.split(b"\0")
    table.size = found.head.size
    table.links = dict(zip(names[::2], names[1::2], strict=False))
    table.looks = _cut(found.looks, DIGEST_SIZE)
    table.briefs = _cut(found.briefs, _BRIEF.size)
    table.places = _cut(found.places, _PLACE.size)
    table.packed = found.packed
    return table


class _Parts(NamedTuple):
    head: _Head
    messages: bytes
    paths: bytes
    links: bytes
    looks: bytes
    briefs: bytes
    places: bytes
    packed: bytes


def _read_parts(file: BinaryIO) -> _Parts | None:
    """Read the head, and the parts behind it; None if the table was not written whole."""
    try:
        head = decode(file.readline(4096), _Head)
    except MalformedDocument:
        return None
    messages, paths, links = file.read(head.messages), file.read(head.paths), file.read(head.links)
    looks, briefs, places = (file.read(head.entries * size) for size in (DIGEST_SIZE, _BRIEF.size, _PLACE.size))
    packed = file.read()
    if head.version != VERSION or len(packed) != _PACKED_SIZE:
        return None
    return _Parts(head, messages, paths, links, looks, briefs, places, packed)


def _paths(parts: _Parts) -> list[bytes]:
    return parts.paths.split(b"\0") if parts.head.entries else []


def _cut(column: bytes, size: int) -> list[bytes]:
    places = itertools.pairwise(range(0, len(column) + 1, size))
    return [column[start:end] for start, end in places]
