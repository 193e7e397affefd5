"""The description of a path in a container, read out of the header that the API puts it in. Pure."""

import base64
import binascii
import stat
from datetime import datetime

import msgspec

from husk.errors import Unavailable
from husk.text.documents import decode

HEADER = "x-docker-container-path-stat"
# Go's bits for what is no plain file, and the system's.
_KINDS = (
    (1 << 31, stat.S_IFDIR),
    (1 << 27, stat.S_IFLNK),
    (1 << 25, stat.S_IFIFO),
    (1 << 24, stat.S_IFSOCK),
    (1 << 21, stat.S_IFCHR),
    (1 << 26, stat.S_IFBLK),
)
_MARKS = ((1 << 23, stat.S_ISUID), (1 << 22, stat.S_ISGID), (1 << 20, stat.S_ISVTX))


class PathStat(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a path: as `os.stat` tells it, `mode` with the bits that the module `stat` knows.

    found = await box.stat("/etc/hostname")
    print(found.size, oct(found.mode), found.is_dir)
    """

    name: str  #: The name, without its directory
    size: int  #: Bytes
    mode: int  #: The kind and the permissions
    mtime: datetime  #: The time of the last change
    link_target: str = ""  #: Where a symbolic link leads to, in the container

    @property
    def is_dir(self) -> bool:
        """True for a directory."""
        return stat.S_ISDIR(self.mode)

    @property
    def is_file(self) -> bool:
        """True for a plain file."""
        return stat.S_ISREG(self.mode)

    @property
    def is_symlink(self) -> bool:
        """True for a symbolic link."""
        return stat.S_ISLNK(self.mode)


class _Told(msgspec.Struct, rename="camel"):
    name: str
    size: int
    mode: int
    mtime: datetime
    link_target: str = ""


def path_stat(header: str) -> PathStat:
    """Read the header; Unavailable if it says nothing that can be read."""
    try:
        told = decode(base64.b64decode(header), _Told)
    except (binascii.Error, ValueError) as error:
        raise Unavailable(f"the engine's answer about a path cannot be read: {error}") from error
    return PathStat(
        name=told.name, size=told.size, mode=_mode(told.mode), mtime=told.mtime, link_target=told.link_target
    )


def _mode(told: int) -> int:
    kind = next((ours for theirs, ours in _KINDS if told & theirs), stat.S_IFREG)
    return kind | (told & 0o777) | sum(ours for theirs, ours in _MARKS if told & theirs)
