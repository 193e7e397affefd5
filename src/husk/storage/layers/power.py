"""Detection of a power cut since a daemon last used these directories.

A note in the exec root tells, which is gone after a reboot where that lies in memory (`/run`), and names the boot where
it does not. It names the data root too: another disk in its place is none that we know. All calls block.
"""

import os
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")


class PowerNote:
    def __init__(self, exec_root: Path, data_root: Path) -> None:
        self._path = exec_root / "boot"
        self._data_root = data_root

    def held(self) -> bool:
        """Tell if it is certain that everything which was in memory when the last daemon ended is still there."""
        try:
            return self._path.read_text() == self._now()
        except (OSError, ValueError):
            return False

    def write(self) -> None:
        """Note that from now on nothing is lost but by another power cut: call it when what was lost is mended."""
        temporary = self._path.with_suffix(".new")
        temporary.write_text(self._now())
        os.replace(temporary, self._path)

    def _now(self) -> str:
        status = os.stat(self._data_root)
        return f"{_BOOT.read_text().strip()} {status.st_dev}:{status.st_ino}\n"
