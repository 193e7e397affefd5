"""Mounts beside a container's root, made so that the runtime can bind them: images, and parts of volumes.

Both are mounted below exec-root/mounts/<container>/<number of the mount point> while the container runs, because the
runtime takes nothing but paths, and a path into a volume could be made to lead out of it by whoever writes to it.
`unstage` is the one function that releases them.
"""

import errno
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from husk.errors import InvalidParameter, NotFound, SystemFault
from husk.kernel.mount import bind, mount_overlay, mounts_below, unmount
from husk.kernel.rooted import open_within


class StagedPart(msgspec.Struct, frozen=True):
    """The content of one mount: layers of an image, or a tree of the host; all of it, or what is at `subpath`."""

    layers: tuple[str, ...] = ()
    tree: str = ""
    subpath: str = ""


def stage(directory: Path, parts: Mapping[int, StagedPart]) -> None:
    """Mount each part below the directory, at its number. Safe to repeat."""
    if _is_staged(directory, parts):
        return  # for a copy that is under way
    unstage(directory)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for number, part in parts.items():
        target = directory / str(number)
        if part.tree:
            _bind_part(Path(part.tree), part.subpath, target)
        else:
            _stage_image(target, part)


def unstage(directory: Path) -> None:
    """Unmount it all; nothing happens when nothing is mounted. What cannot be unmounted is never deleted."""
    if not directory.exists():
        return
    for target in mounts_below(str(directory.resolve())):
        unmount(target, detach=True)
    for entry in os.scandir(directory):
        if entry.is_dir(follow_symlinks=False):
            os.rmdir(entry.path)
        else:
            os.unlink(entry.path)
    directory.rmdir()


def _is_staged(directory: Path, parts: Mapping[int, StagedPart]) -> bool:
    there = set(mounts_below(str(directory.resolve())))
    return all(str((directory / str(number)).resolve()) in there for number in parts)


def _stage_image(target: Path, part: StagedPart) -> None:
    whole = target.with_name(f"{target.name}.whole") if part.subpath else target
    empty = target.with_name(f"{target.name}.empty")
    for directory in (whole, empty):
        directory.mkdir()
    # An overlay without a writable directory needs two others.
    mount_overlay([*part.layers, str(empty)], "", "", str(whole))
    if part.subpath:
        _bind_part(whole, part.subpath, target)


def _bind_part(whole: Path, subpath: str, target: Path) -> None:
    """Mount the subpath of a tree; one by a link that leads out of it is refused."""
    try:
        part = open_within(whole, subpath or ".", os.O_PATH)
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise InvalidParameter(
                f"path concatenation escapes the base directory, base: {whole}, subpath: {subpath}"
            ) from error
        reason = (error.strerror or str(error)).lower()
        kind = NotFound if error.errno == errno.ENOENT else InvalidParameter
        raise kind(f"cannot access path {whole / subpath}: {reason}") from error
    try:
        if os.path.isdir(f"/proc/self/fd/{part}"):
            target.mkdir()
        else:
            target.touch()
        bind(f"/proc/self/fd/{part}", str(target))
    except OSError as error:
        raise SystemFault(f"cannot mount {whole / subpath}: {error.strerror}") from error
    finally:
        os.close(part)
