"""A look at a path of a container, without a worker where one look at the root tells.

`docker cp` asks this first of every copy into a container: with a worker for it, a copy of 3 bytes takes 1.12 to 1.34
times as long (`bench.copies`, docs/performance.md). As long as no symbolic link is on the way
and nothing is mounted there, the kernel's answer for the root alone is the answer for the container. In all other cases
a worker looks, from inside the container's own view (`pack`), which also has the time to wait for somebody's network
file system.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from husk.kernel.rooted import open_beneath
from husk.storage.workers.answers import FileStatus
from husk.storage.workers.pack import file_status


def look(root: Path, mount_points: Iterable[str], path: str) -> FileStatus | None:
    """Find the status of `path` below `root`; None if it takes a worker to tell. FileNotFoundError if it is nothing."""
    with opened(root, mount_points, path) as found:
        return None if found is None else file_status(path, os.fstat(found))


@contextlib.contextmanager
def opened(root: Path, mount_points: Iterable[str], path: str) -> Iterator[int | None]:
    """Open what `path` names while this lasts, by name only (O_PATH): it is no link. None and errors as for `look`."""
    top = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        found = _find(top, mount_points, path)
    finally:
        os.close(top)
    try:
        yield found
    finally:
        if found is not None:
            os.close(found)


def _find(top: int, mount_points: Iterable[str], path: str) -> int | None:
    wanted = parts(path)
    above_mounts = False
    for point in mount_points:
        place = parts(point)
        if place == wanted[: len(place)]:
            return None
        if wanted == place[: len(wanted)]:
            above_mounts = True
        if _may_be_elsewhere(top, place):
            return None
    try:
        found = open_beneath(top, "./" + path.lstrip("/"), os.O_PATH | os.O_NOFOLLOW)
    except FileNotFoundError:
        if above_mounts:
            return None  # it is made when that is mounted
        raise
    except OSError:
        return None  # a link, or something that the worker has the words for
    if stat.S_ISLNK(os.fstat(found).st_mode):
        os.close(found)
        return None
    return found


def _may_be_elsewhere(top: int, place: list[str]) -> bool:
    """Tell if a link may lead what is mounted on `place` to somewhere else."""
    try:
        os.close(open_beneath(top, "/".join(place), os.O_PATH))
    except OSError as error:
        # Where nothing is yet, it will be where its name says.
        return error.errno not in (errno.ENOENT, errno.ENOTDIR)
    return False


def parts(path: str) -> list[str]:
    """The names on the way to `path`."""
    return [part for part in path.split("/") if part not in ("", ".")]
