"""What is kept of a tree between two syncs, so that a client's unchanged files are neither sent nor read again.

For each file, in the order in which a client tells of them: the message in which the client told of it (as it came, so
that an unchanged one is known without being read), its path, and the SHA-256 of its content if it is a plain file.
"""

import itertools
from typing import BinaryIO

import msgspec

from husk.storage.sync.packets import HEAD_SIZE, frame, read_head

_VERSION = 1
DIGEST_SIZE = 32
NO_DIGEST = bytes(DIGEST_SIZE)


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
        self.digests: list[bytes] = []

    def __len__(self) -> int:
        return len(self.messages)

    def contents(self) -> dict[bytes, bytes]:
        """The SHA-256 of each plain file, by its path."""
        pairs = zip(self.paths, self.digests, strict=True)
        return {path: digest for path, digest in pairs if digest != NO_DIGEST}


def write_table(table: Table, file: BinaryIO) -> None:
    messages = b"".join(map(frame, table.messages))
    paths = b"\0".join(table.paths)
    links = b"\0".join(itertools.chain.from_iterable(table.links.items()))
    head = _Head(_VERSION, len(table), len(messages), len(paths), len(links), table.size)
    file.write(msgspec.json.encode(head) + b"\n")
    file.write(messages)
    file.write(paths)
    file.write(links)
    file.write(b"".join(table.digests))


def read_table(file: BinaryIO) -> Table | None:
    """A table that was written whole; None if it was not."""
    try:
        head = msgspec.json.decode(file.readline(4096), type=_Head)
    except msgspec.DecodeError:
        return None
    messages, paths, links = file.read(head.messages), file.read(head.paths), file.read(head.links)
    digests = file.read()
    if head.version != _VERSION or len(digests) != head.entries * DIGEST_SIZE:
        return None
    table = Table()
    position = 0
    for _ in range(head.entries):
        start = position + HEAD_SIZE
        position = start + read_head(messages, position)
        table.messages.append(messages[start:position])
    table.paths = paths.split(b"\0") if head.entries else []
    names = links.split(b"\0")
    table.size = head.size
    table.links = dict(zip(names[::2], names[1::2], strict=False))
    places = itertools.pairwise(range(0, len(digests) + 1, DIGEST_SIZE))
    table.digests = [digests[start:end] for start, end in places]
    return table
