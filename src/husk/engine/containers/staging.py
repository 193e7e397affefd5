"""What has to be mounted beside a container's root before the runtime can bind it? Images, and parts of volumes.

Both are mounted below exec-root/mounts/<container>/<number of the mount point> while the container runs, because the
runtime takes nothing but paths, and a path into a volume could be made to lead out of it by whoever writes to it.
`unstage` is the one function that releases them.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from husk.engine.containers.mounts import needs_staging
from husk.engine.containers.places import Places
from husk.engine.model.container import Container, MountPoint
from husk.engine.volumes.service import Volumes
from husk.errors import InvalidParameter, SystemFault
from husk.kernel.mount import bind, mount_overlay, mounts_below, unmount
from husk.kernel.rooted import open_in_root
from husk.storage.layers import LayerStore


class Stager:
    """Has everything in place that a container's mounts are made of, while it runs."""

    def __init__(self, places: Places, layers: LayerStore, volumes: Volumes) -> None:
        self._places = places
        self._layers = layers
        self._volumes = volumes

    async def mount(self, record: Container) -> None:
        await self._volumes.mount(record)
        if any(map(needs_staging, record.mounts)):
            lower = {n: self._layers.lower(p.layers) for n, p in enumerate(record.mounts) if p.type == "image"}
            await asyncio.to_thread(stage, record, self._places, lower)

    async def unmount(self, record: Container) -> None:
        """Safe to call twice, and for a container that never ran."""
        if any(map(needs_staging, record.mounts)):
            await asyncio.to_thread(unstage, self._places, record.id)
        await self._volumes.unmount(record)


def stage(record: Container, places: Places, lower: Mapping[int, Sequence[str]]) -> None:
    """Mount what the container needs; `lower` has the layers of each image that it mounts. Safe to repeat."""
    if _is_staged(record, places):
        return  # for a copy that is under way
    unstage(places, record.id)
    for number, point in enumerate(record.mounts):
        if not needs_staging(point):
            continue
        target = places.staged(record.id, number)
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if point.type == "image":
            _stage_image(target, lower[number], point)
        else:
            whole = point.source.removesuffix("/" + point.subpath)
            _bind_part(Path(whole), point, target)


def _is_staged(record: Container, places: Places) -> bool:
    there = set(mounts_below(str(places.staging(record.id).resolve())))
    wanted = [places.staged(record.id, n) for n, point in enumerate(record.mounts) if needs_staging(point)]
    return all(str(target.resolve()) in there for target in wanted)


def unstage(places: Places, container_id: str) -> None:
    """Unmount it all; nothing happens when nothing is mounted. What cannot be unmounted is never deleted."""
    directory = places.staging(container_id)
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


def _stage_image(target: Path, lower: Sequence[str], point: MountPoint) -> None:
    whole = target.with_name(f"{target.name}.whole") if point.subpath else target
    empty = target.with_name(f"{target.name}.empty")
    for directory in (whole, empty):
        directory.mkdir()
    # An overlay without a writable directory needs two others.
    mount_overlay([*lower, str(empty)], "", "", str(whole))
    if point.subpath:
        _bind_part(whole, point, target)


def _bind_part(whole: Path, point: MountPoint, target: Path) -> None:
    """Mount the subpath of a tree; a link in it leads nowhere but inside."""
    try:
        part = open_in_root(whole, point.subpath, os.O_PATH)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InvalidParameter(f"cannot access path {whole / point.subpath}: {reason}") from error
    try:
        if os.path.isdir(f"/proc/self/fd/{part}"):
            target.mkdir()
        else:
            target.touch()
        bind(f"/proc/self/fd/{part}", str(target))
    except OSError as error:
        raise SystemFault(f"cannot mount {whole / point.subpath}: {error.strerror}") from error
    finally:
        os.close(part)
