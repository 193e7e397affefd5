"""Take back what was put on a host: what the record names, as far as it is still ours, and nothing else."""

import os
from collections.abc import Iterator
from pathlib import Path

from husk.cli.install import group, openrc, systemd
from husk.cli.install.files import SCRIPT
from husk.cli.install.record import PLACE, Installed, below, digest_of, inside
from husk.errors import HuskError


def take_back(root: Path, record: Installed, force: bool = False) -> Iterator[str]:
    """Line by line what was done, and what was left."""
    if record.units and any(
        os.path.lexists(below(root, path)) for path in record.files if path.endswith(tuple(record.units))
    ):
        try:
            systemd.disable(root, record.units, systemd.running(root))
            yield "systemd no longer runs the daemon"
        except HuskError as error:
            yield f"left out: {error.message}"
    if record.openrc and os.path.lexists(below(root, SCRIPT)):
        try:
            if openrc.running(root):
                openrc.stop()
            yield "OpenRC no longer runs the daemon"
        except HuskError as error:
            yield f"left out: {error.message}"
    for path, digest in record.files.items():
        yield from _file(root, path, digest, force)
    for path, target in record.links.items():
        place = below(root, path)
        if place.is_symlink() and os.readlink(place) == target:
            place.unlink()
            yield f"removed {path}"
    if record.units and systemd.running(root):
        try:
            systemd.reload(root)
        except HuskError as error:
            yield f"left out: {error.message}"
    if record.group_made:
        yield from _group(root, record.group)
    below(root, PLACE).unlink(missing_ok=True)
    for path in sorted(record.directories, key=len, reverse=True):
        try:
            below(root, path).rmdir()
        except OSError:
            continue  # others have something in it, or have removed it


def _file(root: Path, path: str, digest: str, force: bool) -> Iterator[str]:
    place = below(root, path)
    found = digest_of(place)
    if found is None:
        return
    if found != digest and not force:
        yield f"left {path}: it was changed (--force removes it)"
        return
    place.unlink()
    yield f"removed {path}"


def _group(root: Path, name: str) -> Iterator[str]:
    found = group.members(root, name)
    if found is None:
        return
    if found:
        yield f"left the group {name}: {', '.join(found)} {'is' if len(found) == 1 else 'are'} in it"
        return
    try:
        group.remove(root, name)
        yield f"removed the group {name}"
    except HuskError as error:
        yield f"left the group {name}: {error.message}"


def left(root: Path, data_root: Path, exec_root: Path, record: Installed) -> Iterator[str]:
    """Tell of the things that stay, for they are not ours to take: they hold what users made, or were there before."""
    if inside(root, str(data_root)).is_dir():
        yield f"{data_root}: images, containers and volumes (rm -r {data_root} removes them for good)"
    bundles = inside(root, f"{exec_root}/containers")
    running = sum(1 for _ in bundles.iterdir()) if bundles.is_dir() else 0
    if running:
        yield f"{running} running container{'s' if running > 1 else ''}: the next daemon takes them over"
    if inside(root, "/etc/husk").is_dir():
        yield "/etc/husk: your settings"
    if record.group and not record.group_made:
        yield f"the group {record.group}, which was there before"
