"""What is kept of a tree between two syncs, so that a client's unchanged files are neither sent nor read again.

For each file, in the order in which a client tells of them: the message in which the client told of it (as it came, so
that an unchanged one is known without being read), its path, and what it looks like (`husk.storage.file_digest`).
"""

import itertools
from typing import BinaryIO

import msgspec

from husk.storage.file_digest import DIGEST_SIZE
from husk.storage.sync.packets import HEAD_SIZE, frame, read_head

VERSION = 2
NO_LOOK = bytes(DIGEST_SIZE)


class _Head(msgspec.Struct):
    version: int
    entries: int
    messages: int
    paths: int
    links: int
    size: int


class Table:
    """All files of a tree, three lists side by side, and of those that are hard links the first name of the file."""

    def __init__(self) -> None:
        self.links: dict[bytes, bytes] = {}
        self.size = 0  # of all plain files
        self.messages: list[bytes] = []
        self.paths: list[bytes] = []
        self.looks: list[bytes] = []

    def __len__(self) -> int:
        return len(self.messages)


def write_table(table: Table, file: BinaryIO) -> None:
    messages = b"".join(map(frame, table.messages))
    paths = b"\0".join(table.paths)
    links = b"\0".join(itertools.chain.from_iterable(table.links.items()))
    head = _Head(VERSION, len(table), len(messages), len(paths), len(links), table.size)
    file.write(msgspec.json.encode(head) + b"\n")
    file.write(messages)
    file.write(paths)
    file.write(links)
    file.write(b"".join(table.looks))


def read_looks(file: BinaryIO) -> dict[bytes, bytes]:
    """What all files look like, by their paths and in the table's order; nothing if it is not known of all."""
    found = _read_parts(file)
    if found is None:
        return {}
    head, _, paths, _, looks = found
    known = _looks(looks)
    return {} if NO_LOOK in known else dict(zip(_paths(head, paths), known, strict=True))


def read_table(file: BinaryIO) -> Table | None:
    """A table that was written whole; None if it was not."""
    found = _read_parts(file)
    if found is None:
        return None
    head, messages, paths, links, looks = found
    table = Table()
    position = 0
    for _ in range(head.entries):
        start = position + HEAD_SIZE
        position = start + read_head(messages, position)
        table.messages.append(messages[start:position])
    table.paths = _paths(head, paths)
    names = links.split(b"\0")
    table.size = head.size
    table.links = dict(zip(names[::2], names[1::2], strict=False))
    table.looks = _looks(looks)
    return table


def _read_parts(file: BinaryIO) -> tuple[_Head, bytes, bytes, bytes, bytes] | None:
    """Messages, paths, links and looks behind their head; None if it was not written whole."""
    try:
        head = msgspec.json.decode(file.readline(4096), type=_Head)
    except msgspec.DecodeError:
        return None
    messages, paths, links = file.read(head.messages), file.read(head.paths), file.read(head.links)
    looks = file.read()
    if head.version != VERSION or len(looks) != head.entries * DIGEST_SIZE:
        return None
    return head, messages, paths, links, looks


def _paths(head: _Head, paths: bytes) -> list[bytes]:
    return paths.split(b"\0") if head.entries else []


def _looks(looks: bytes) -> list[bytes]:
    places = itertools.pairwise(range(0, len(looks) + 1, DIGEST_SIZE))
    return [looks[start:end] for start, end in places]
