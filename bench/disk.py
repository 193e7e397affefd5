"""A file system that nobody has used before, for one engine's turn.

ext4 does not use the inodes of removed files again for a minute or more, and searching past thousands of them makes new
files several times as slow: whoever came after an engine that had removed an image would pay for it.
"""

import contextlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

_OPTIONS = ["-q", "-E", "lazy_itable_init=0,lazy_journal_init=0"]


@contextlib.contextmanager
def fresh_disk(gigabytes: int, directory: str = "/var/tmp") -> Iterator[Path]:
    """A new ext4 in a file below `directory`; a plain directory where this host cannot mount one."""
    top = Path(tempfile.mkdtemp(prefix="hkb-disk-", dir=directory))
    image, mount_point = top / "image", top / "d"
    mount_point.mkdir()
    try:
        with _mounted(image, mount_point, gigabytes):
            yield mount_point
    finally:
        shutil.rmtree(top, ignore_errors=True)


@contextlib.contextmanager
def _mounted(image: Path, mount_point: Path, gigabytes: int) -> Iterator[None]:
    try:
        for command in (
            ["fallocate", "-l", f"{gigabytes}G", str(image)],
            ["mkfs.ext4", *_OPTIONS, str(image)],
            ["mount", "-o", "loop", str(image), str(mount_point)],
        ):
            subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"# no file system of its own: {getattr(error, 'stderr', '') or error}", file=sys.stderr)
        yield
        return
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(mount_point)], check=True)
