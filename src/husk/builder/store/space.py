"""The limit of what a stranger may send: as much as fits on the disk, less what others need there to go on."""

import os
from pathlib import Path

# Of what a disk has, a twentieth stays free, but not more than this.
_MOST_KEPT_FREE = 2 << 30


def room_left(path: Path | int) -> int:
    """The bytes that may still be written where `path`, or an open directory, is; at least one. It blocks."""
    found = os.statvfs(path)
    kept_free = min(_MOST_KEPT_FREE, found.f_blocks * found.f_frsize // 20)
    return max(1, found.f_bavail * found.f_frsize - kept_free)
