"""The limit of what a stranger may send: as much as fits on the disk, less what others need there to go on.

A context that holds the very directory it is written to: it would be sent again and again while it is written.

A client that builds from a directory with our data root in it sends that too, and what it has just sent with it. We
see no more of the client than the paths it tells of. So the directory `/srv/app/data/layers/l/7`, written to, is known
by a path that has the end of it twice, as `data/layers/l/7/data/layers/l/7`: then one copy of itself is in it.
"""

import os
from pathlib import Path

# Of what a disk has, a twentieth stays free, but not more than this.
_MOST_KEPT_FREE = 2 << 30
HOLDS_ITSELF = (
    "the context holds the engine's own data root, which would be sent again and again while it is written: "
    "name it in .dockerignore, or build from another directory"
)
# A single name may stand twice in anybody's context.
_FEWEST_NAMES = 2


def room_left(path: Path | int) -> int:
    """The bytes that may still be written where `path`, or an open directory, is; at least one. It blocks."""
    found = os.statvfs(path)
    kept_free = min(_MOST_KEPT_FREE, found.f_blocks * found.f_frsize // 20)
    return max(1, found.f_bavail * found.f_frsize - kept_free)


def doubled(directory: str) -> frozenset[bytes]:
    """Relative paths of directories, any of which tells that what is written to `directory` holds it."""
    names = directory.strip("/").split("/")
    ends = ("/".join(names[start:]) for start in range(len(names) - _FEWEST_NAMES + 1))
    return frozenset(f"{end}/{end}".encode("utf-8", "surrogateescape") for end in ends)
