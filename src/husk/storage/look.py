"""What does a path of a container name? Answered without a worker where one look at the root tells.

`docker cp` asks this first, every time. As long as no symbolic link is on the way and nothing is mounted there, the
kernel's answer for the root alone is the answer for the container. In all other cases a worker looks, from inside the
container's own view (`pack`), which also has the time to wait for somebody's network file system.
"""

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from husk.kernel.rooted import open_beneath
from husk.storage.pack import FileStatus, file_status


def look(root: Path, mount_points: Iterable[str], path: str, cached: bool = False) -> FileStatus | None:
    """What `path` names below `root`; None if that cannot be told from here. FileNotFoundError if it is nothing.

    With `cached` it asks no disk: BlockingIOError if it would have to.
    """
    top = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if any(_may_hide(top, point, path, cached) for point in mount_points):
            return None
        return _look_at(top, path, cached)
    finally:
        os.close(top)


def _may_hide(top: int, point: str, path: str, cached: bool) -> bool:
    """Whether `path` may be behind, or on the way to, what is mounted on `point`."""
    place, wanted = _parts(point), _parts(path)
    shorter = min(len(place), len(wanted))
    if place[:shorter] == wanted[:shorter]:
        return True
    try:
        os.close(open_beneath(top, "/".join(place), os.O_PATH, cached))
    except BlockingIOError:
        raise
    except OSError as error:
        # A link leads the mount to another place; where nothing is yet, it will be where its name says.
        return error.errno not in (errno.ENOENT, errno.ENOTDIR)
    return False


def _look_at(top: int, path: str, cached: bool) -> FileStatus | None:
    try:
        found = open_beneath(top, "./" + path.lstrip("/"), os.O_PATH | os.O_NOFOLLOW, cached)
    except (FileNotFoundError, BlockingIOError):
        raise
    except OSError:
        return None  # a link, or something that the worker has the words for
    try:
        status = os.fstat(found)
    finally:
        os.close(found)
    return None if stat.S_ISLNK(status.st_mode) else file_status(path, status)


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]
