"""The files of a task's secrets and configs: a tmpfs for each task, so that the values are never on a disk.

All functions block: call them from a thread.
"""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from husk.kernel import mount


class TaskFile(NamedTuple):
    content: bytes
    uid: int
    gid: int
    mode: int


class TaskFiles:
    """`<directory>/<task>/<number>`, for each task that has any."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def write(self, task_id: str, files: Sequence[TaskFile]) -> list[Path]:
        """Make the files of a task, in place of any that it has; where they are."""
        self.drop(task_id)
        place = self._directory / task_id
        place.mkdir(mode=0o700, parents=True)
        _mount(place)
        paths = []
        for number, file in enumerate(files):
            path = place / str(number)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with open(descriptor, "wb") as stream:
                stream.write(file.content)
                os.fchown(descriptor, file.uid, file.gid)
                os.fchmod(descriptor, file.mode)
            paths.append(path)
        return paths

    def drop(self, task_id: str) -> None:
        """Safe to call twice."""
        place = self._directory / task_id
        for point in mount.mounts_below(str(place)):
            mount.unmount(point, detach=True)
        with contextlib.suppress(FileNotFoundError):
            place.rmdir()

    def tasks(self) -> list[str]:
        """The ids of the tasks that have files."""
        with contextlib.suppress(FileNotFoundError):
            return os.listdir(self._directory)
        return []


def _mount(place: Path) -> None:
    flags = mount.MS_NOSUID | mount.MS_NODEV | mount.MS_NOEXEC
    try:
        # Not to the swap device either, where the kernel (6.4) can promise that.
        mount.mount("tmpfs", str(place), "tmpfs", flags, "mode=0700,size=64m,noswap")
    except OSError:
        mount.mount("tmpfs", str(place), "tmpfs", flags, "mode=0700,size=64m")
