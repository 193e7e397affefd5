"""Who needs a container's file systems mounted? Its process, and whoever copies files; the last one unmounts them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from husk.engine.containers.drivers import Assembly, Layers, Volumes
from husk.engine.containers.index import Index, Instance
from husk.engine.model.container import Container, MountPoint
from husk.errors import Conflict
from husk.runtime.assembly.staging import Part
from husk.tasks import Tasks


class Stager:
    """Has in place what a container's mounts are made of: volumes, parts of volumes, images."""

    def __init__(self, assembly: Assembly, layers: Layers, volumes: Volumes) -> None:
        self._assembly = assembly
        self._layers = layers
        self._volumes = volumes

    async def mount(self, record: Container) -> None:
        await self._volumes.mount(record)
        if parts := {number: self._part(point) for number, point in enumerate(record.mounts) if point.staged}:
            await asyncio.to_thread(self._assembly.stage, record.id, parts)

    async def unmount(self, record: Container) -> None:
        """Safe to call twice, and for a container that never ran."""
        if any(point.staged for point in record.mounts):
            await asyncio.to_thread(self._assembly.unstage, record.id)
        await self._volumes.unmount(record)

    def _part(self, point: MountPoint) -> Part:
        if point.type == "image":
            return Part(layers=tuple(self._layers.lower(point.layers)), subpath=point.subpath)
        return Part(tree=point.source.removesuffix("/" + point.subpath), subpath=point.subpath)


class Roots:
    def __init__(self, index: Index, assembly: Assembly, layers: Layers, stager: Stager) -> None:
        self._index = index
        self._assembly = assembly
        self._layers = layers
        self._stager = stager
        self._tasks = Tasks()

    def lower(self, record: Container) -> list[str]:
        """What the container's own changes lie on, topmost first."""
        return [str(self._assembly.paths.mount_points_layer), *self._layers.lower(record.layers)]

    @contextlib.asynccontextmanager
    async def mounted(self, instance: Instance) -> AsyncIterator[Path]:
        """The root, mounted while the block lasts, whether the container runs, starts or ends meanwhile.

        What its own mounts are made of is in place too: volumes, parts of volumes, images.
        """
        async with instance.lock:
            if not self._index.present(instance) or instance.record.state.status == "removing":
                raise Conflict(f"container {instance.id} is marked for removal and cannot be used")
            instance.root_users += 1
            try:
                # A thread that mounts cannot be stopped: whoever is cancelled meanwhile waits for it, then unmounts.
                await self._tasks.to_its_end(self._mount(instance), f"mount the root of {instance.id[:12]}")
            except BaseException:
                await self._tasks.to_its_end(self._leave(instance), f"unmount the root of {instance.id[:12]}")
                raise
        try:
            yield self._assembly.root(instance.id).merged
        finally:
            if _in_use(instance) and not instance.lock.locked():
                instance.root_users -= 1  # nothing to unmount, and nobody is about to
            else:
                # A client that leaves cancels us; the mount must be given back all the same.
                await self._tasks.to_its_end(self._give_back(instance), f"unmount the root of {instance.id[:12]}")

    async def _mount(self, instance: Instance) -> None:
        root = self._assembly.root(instance.id)
        if not root.mounted:
            await asyncio.to_thread(root.mount, self.lower(instance.record))
        if not _in_use(instance):
            await self._stager.mount(instance.record)

    async def _give_back(self, instance: Instance) -> None:
        async with instance.lock:
            await self._leave(instance)

    async def _leave(self, instance: Instance) -> None:
        instance.root_users -= 1
        if not instance.root_users and not _in_use(instance):
            await asyncio.to_thread(self._assembly.root(instance.id).unmount)
            await self._stager.unmount(instance.record)


def _in_use(instance: Instance) -> bool:
    """Does the container's own process need the root?"""
    return instance.record.state.status in ("running", "paused")
