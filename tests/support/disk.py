"""A small disk of a test's own, to be filled: an ext4 file system in a file, mounted."""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from husk.kernel.mount import mounts_below, unmount

_CHUNKS = (1 << 20, 1 << 16, 1 << 12, 512, 1)


class SmallDisk:
    def __init__(self, root: Path) -> None:
        self.root = root
        self._filler = root / "filler"

    def fill(self) -> None:
        """Take all room there is, to the last byte that root may have."""
        with self._filler.open("ab", buffering=0) as filler:
            for size in _CHUNKS:
                with contextlib.suppress(OSError):
                    while True:
                        filler.write(bytes(size))
            with contextlib.suppress(OSError):
                os.fsync(filler.fileno())
        # What was reserved for writes that never came is free again after they failed.
        with self._filler.open("ab", buffering=0) as filler, contextlib.suppress(OSError):
            while filler.write(bytes(1 << 12)) == 1 << 12:
                pass

    def make_room(self) -> None:
        self._filler.unlink(missing_ok=True)

    @property
    def free(self) -> int:
        found = os.statvfs(self.root)
        return found.f_bfree * found.f_frsize

    @property
    def mounts(self) -> list[str]:
        """The mounts on it."""
        return [path for path in mounts_below(str(self.root)) if path != str(self.root)]


@contextlib.contextmanager
def small_disk(megabytes: int = 48) -> Iterator[SmallDisk]:
    directory = Path(tempfile.mkdtemp(prefix="hkd-", dir="/tmp"))
    image, root = directory / "disk", directory / "root"
    root.mkdir()
    try:
        with image.open("wb") as file:
            file.truncate(megabytes << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True, capture_output=True)
        subprocess.run(["mount", "-o", "loop", str(image), str(root)], check=True, capture_output=True)
        yield SmallDisk(root)
    finally:
        for target in mounts_below(str(directory)):
            with contextlib.suppress(OSError):
                unmount(target, detach=True)
        image.unlink(missing_ok=True)
        root.rmdir()
        directory.rmdir()
