"""An entry of an archive, and the few numbers that all who read or write archives need."""

from typing import NoReturn

import msgspec

BLOCK = 512
# What one header may make us hold in memory; Go's archive/tar, which Docker uses, has the same limit.
LARGEST_EXTENSION = 1 << 20

REGULAR, HARD_LINK, SYMLINK, CHARACTER, BLOCK_DEVICE, DIRECTORY, FIFO = (b"%d" % digit for digit in range(7))


class TarError(Exception):
    """The archive is damaged, or asks for something that no archive may ask for."""


class TarEntry(msgspec.Struct, eq=False):
    """One thing in the archive; `size` bytes of data follow it in the stream."""

    name: bytes
    kind: bytes
    mode: int
    uid: int
    gid: int
    size: int
    mtime_ns: int
    link: bytes
    major: int = 0
    minor: int = 0
    xattrs: list[tuple[str, bytes]] = []
    # Where the data belongs in the file, and the file's full size; None for an ordinary file.
    sparse: list[tuple[int, int]] | None = None
    real_size: int = 0


def padding(size: int) -> int:
    """Return the number of zeros that follow data of this size, up to the next block."""
    return -size % BLOCK


def clean_name(name: bytes) -> bytes:
    """A name as a path relative to the root, without `.` and `..`; one that leads out of the root is refused."""
    if b"//" not in name and b"/." not in name and name[:1] not in (b"/", b"."):
        return name.rstrip(b"/")
    parts: list[bytes] = []
    for part in name.split(b"/"):
        if part == b"..":
            if not parts:
                raise TarError(f"invalid archive: {text(name)} is outside of the root directory")
            parts.pop()
        elif part and part != b".":
            parts.append(part)
    return b"/".join(parts)


def truncated() -> NoReturn:
    raise TarError("unexpected EOF")


def invalid() -> NoReturn:
    raise TarError("archive/tar: invalid tar header")


def text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
