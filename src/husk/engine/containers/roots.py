"""Who needs a container's file systems mounted? Its process, and whoever copies files; the last one unmounts them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from husk.engine.containers.index import Index, Instance
from husk.engine.containers.places import Places
from husk.engine.containers.staging import Stager
from husk.engine.model.container import Container
from husk.errors import Conflict
from husk.storage.layers import LayerStore
from husk.tasks import Tasks


class Roots:
    def __init__(self, index: Index, places: Places, layers: LayerStore, stager: Stager) -> None:
        self._index = index
        self._places = places
        self._layers = layers
        self._stager = stager
        self._tasks = Tasks()

    def lower(self, record: Container) -> list[str]:
        """What the container's own changes lie on, topmost first."""
        return [str(self._places.mount_points_layer), *self._layers.lower(record.layers)]

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
            yield self._places.root(instance.id).merged
        finally:
            if _in_use(instance) and not instance.lock.locked():
                instance.root_users -= 1  # nothing to unmount, and nobody is about to
            else:
                # A client that leaves cancels us; the mount must be given back all the same.
                await self._tasks.to_its_end(self._give_back(instance), f"unmount the root of {instance.id[:12]}")

    async def _mount(self, instance: Instance) -> None:
        root = self._places.root(instance.id)
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
            await asyncio.to_thread(self._places.root(instance.id).unmount)
            await self._stager.unmount(instance.record)


def _in_use(instance: Instance) -> bool:
    """Does the container's own process need the root?"""
    return instance.record.state.status in ("running", "paused")
