"""Directories for what must never be on a disk: a tmpfs each, for root alone. All functions block."""

import contextlib
from pathlib import Path

from husk.kernel import mount


def make(place: Path) -> None:
    """Make such a directory, where there is nothing mounted yet."""
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    if mount.mounts_below(str(place)):
        return
    flags = mount.MS_NOSUID | mount.MS_NODEV | mount.MS_NOEXEC
    try:
        # Not to the swap device either, where the kernel (6.4) can promise that.
        mount.mount("tmpfs", str(place), "tmpfs", flags, "mode=0700,size=64m,noswap")
    except OSError:
        mount.mount("tmpfs", str(place), "tmpfs", flags, "mode=0700,size=64m")


def drop(place: Path) -> None:
    """Remove one with all that is in it. Safe to call twice."""
    for point in mount.mounts_below(str(place)):
        mount.unmount(point, detach=True)
    with contextlib.suppress(FileNotFoundError):
        place.rmdir()
