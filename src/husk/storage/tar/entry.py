"""What one entry of an archive says, and the few numbers that all who read or write archives need."""

from typing import NoReturn

BLOCK = 512
# What one header may make us hold in memory; Go's archive/tar, which Docker uses, has the same limit.
LARGEST_EXTENSION = 1 << 20

REGULAR, HARD_LINK, SYMLINK, CHARACTER, BLOCK_DEVICE, DIRECTORY, FIFO = (b"%d" % digit for digit in range(7))


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


def padding(size: int) -> int:
    """How many zeros follow data of this size, up to the next block."""
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
