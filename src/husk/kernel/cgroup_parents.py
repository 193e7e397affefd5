"""Control groups of ours above those of containers, and what they must allow. For containers with a parent of the
client's choice, and for real-time limits, which every group on the way down has to grant.

What we make is marked with an extended attribute, so that whoever removes the last container below it may remove it
too, and never what an administrator made.
"""

import contextlib
import os
from pathlib import Path, PurePosixPath

from husk.errors import SystemFault
from husk.kernel import cgroups

_MARK = "trusted.husk"


def make(path: str) -> None:
    """Make the groups above the container's group `path` in every tree. Safe to repeat."""
    for root in cgroups.roots():
        for parent in reversed(PurePosixPath(path).parents):
            directory = root / str(parent).lstrip("/")
            with contextlib.suppress(FileExistsError):
                try:
                    directory.mkdir()
                except FileExistsError:
                    raise
                except OSError as error:
                    raise SystemFault(f"cannot make the cgroup {directory}: {error.strerror}") from error
                with contextlib.suppress(OSError):  # then it stays, as with dockerd
                    os.setxattr(directory, _MARK, b"1")


def remove(path: str) -> None:
    """Remove the groups above the container's group `path` that we made and that hold nothing any more."""
    for root in cgroups.roots():
        for parent in list(PurePosixPath(path).parents)[:-1]:
            directory = root / str(parent).lstrip("/")
            try:
                os.getxattr(directory, _MARK)
                directory.rmdir()
            except OSError:
                break


def grant_realtime(path: str, runtime: int, period: int) -> None:
    """Let the groups above `path` have `runtime` microseconds of every `period` for it, beside what they grant."""
    root = cgroups.ROOT / "cpu"
    for parent in list(reversed(PurePosixPath(path).parents))[1:]:
        directory = root / str(parent).lstrip("/")
        directory.mkdir(exist_ok=True)
        others = sum(_read(child) for child in directory.iterdir() if child.is_dir())
        try:
            if period:
                (directory / "cpu.rt_period_us").write_text(str(period))
            if _read(directory) < others + runtime:
                (directory / "cpu.rt_runtime_us").write_text(str(others + runtime))
        except OSError as error:
            raise SystemFault(
                f"this host has no {runtime} microseconds of real time left for containers: {error.strerror}"
            ) from error


def _read(directory: Path) -> int:
    try:
        return max(0, int((directory / "cpu.rt_runtime_us").read_text()))
    except (OSError, ValueError):
        return 0
