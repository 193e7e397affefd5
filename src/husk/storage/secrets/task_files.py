"""The files of a task's secrets and configs: a tmpfs for each task, so that the values are never on a disk.

All functions block: call them from a thread.
"""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from husk.storage.secrets import memory


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
        memory.make(place)
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
        memory.drop(self._directory / task_id)

    def tasks(self) -> list[str]:
        """The ids of the tasks that have files."""
        with contextlib.suppress(FileNotFoundError):
            return os.listdir(self._directory)
        return []
