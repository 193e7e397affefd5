"""A cut of the power for tests: a data root on a file system of its own, whose disk is a file.

What the file system has not written to its disk is not in that file: a copy of it is what a machine finds after a power
cut. The journal is told to wait long before it commits by itself, so that only what was synced counts.

    with Disk(daemon.config.data_root) as disk:
        daemon.start()
        ...
        disk.cut(daemon)      # the daemon is killed, and started again on what was on the disk
"""

import os
import signal
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.daemon import Daemon

_SIZE = 400 << 20


class Disk:
    def __init__(self, mount_point: Path) -> None:
        self._mount_point = mount_point
        self._images = [mount_point.with_name("disk0")]

    def __enter__(self) -> Self:
        self._mount_point.mkdir()
        with self._images[0].open("wb") as image:
            image.truncate(_SIZE)
        # Nothing that the kernel would write later by itself.
        _run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", str(self._images[0]))
        self._mount()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _run("umount", "-l", str(self._mount_point), check=False)

    def sync(self) -> None:
        """All that there is now is on the disk."""
        _run("sync", "-f", str(self._mount_point))

    def cut(self, daemon: Daemon, *processes: int, start: bool = True) -> None:
        """The power fails at this moment, and comes back; `processes` of containers would not run then."""
        assert daemon.process is not None
        daemon.process.send_signal(signal.SIGSTOP)
        self._images.append(self._mount_point.with_name(f"disk{len(self._images)}"))
        _run("cp", "--sparse=always", str(self._images[-2]), str(self._images[-1]))
        daemon.kill9()
        for pid in processes:
            os.kill(pid, signal.SIGKILL)
        _run("umount", "-l", str(self._mount_point))
        os.truncate(self._images[-2], 0)
        # An exec root lies in memory, which is empty now.
        (daemon.config.exec_root / "boot").unlink(missing_ok=True)
        self._mount()
        if start:
            daemon.start()

    def _mount(self) -> None:
        _run("mount", "-o", "loop,commit=600", str(self._images[-1]), str(self._mount_point))


def _run(*command: str, check: bool = True) -> None:
    subprocess.run(command, check=check, capture_output=True, timeout=60)
