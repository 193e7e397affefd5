"""Files and directories made in a step's writable directory for mounts alone, and taken out when the step has ended.

The directory is the step's own by then, and may have links anywhere: none is followed.
"""

import contextlib
import os
import stat
from pathlib import Path

from husk.kernel.rooted import open_beneath

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Stubs:
    """All that a writable directory has now, before the step runs."""

    def __init__(self, upper: Path) -> None:
        self._upper = upper
        # By their paths below it, what is inside before what it is in.
        self._found: dict[str, os.stat_result] = {}
        for directory, directories, files in os.walk(upper, topdown=False, followlinks=False):
            for name in [*files, *directories]:
                path = os.path.join(directory, name)
                self._found[os.path.relpath(path, upper)] = os.lstat(path)

    def remove(self) -> None:
        """Remove those of them that are as they were: empty files, and directories that nothing was put into."""
        if not self._found:
            return
        top = os.open(self._upper, _DIRECTORY)
        try:
            changed = self._changed(top)
            for path, before in self._found.items():
                if path not in changed:
                    _remove(top, path, before.st_mode)
        finally:
            os.close(top)

    def _changed(self, top: int) -> set[str]:
        """Looked at before anything is removed, which changes the directories too."""
        return {path for path, before in self._found.items() if not _is_as_it_was(top, path, before)}


def _is_as_it_was(top: int, path: str, before: os.stat_result) -> bool:
    try:
        fd = open_beneath(top, path, os.O_PATH | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        now = os.fstat(fd)
    finally:
        os.close(fd)
    if (now.st_mode, now.st_uid, now.st_gid) != (before.st_mode, before.st_uid, before.st_gid):
        return False
    return now.st_mtime_ns == before.st_mtime_ns if stat.S_ISDIR(now.st_mode) else now.st_size == 0


def _remove(top: int, path: str, mode: int) -> None:
    """Remove it, and let the directory that it was in look as before."""
    above, _, name = path.rpartition("/")
    try:
        parent = open_beneath(top, above or ".", _DIRECTORY & ~os.O_NOFOLLOW)
    except OSError:
        return
    try:
        before = os.fstat(parent)
        # A directory with something in it stays.
        with contextlib.suppress(OSError):
            if stat.S_ISDIR(mode):
                os.rmdir(name, dir_fd=parent)
            else:
                os.unlink(name, dir_fd=parent)
            os.utime(parent, ns=(before.st_atime_ns, before.st_mtime_ns))
    finally:
        os.close(parent)
