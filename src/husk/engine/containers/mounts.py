"""The mounts of a container: taken when it is made, in place while somebody needs them.

`MountTaker` completes what `config.mounts` has read with what the host knows, and gives an empty volume its first
content: what the image has in that place. That happens when the container is made, not when it starts, for a container
that only carries volumes for others (`--volumes-from`) never starts.

`Roots` knows who needs a container's file systems mounted: its process, and whoever copies files; the last one
unmounts them. `Stager` has in place what its own mounts are made of.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from husk.aio.tasks import Tasks
from husk.engine.containers.config.mounts import declared, inherited, wanted_mounts
from husk.engine.containers.drivers import Assembly, Layers, Root
from husk.engine.containers.drivers import Volumes as MountedVolumes
from husk.engine.containers.index import ContainerIndex, Instance
from husk.engine.images.service import Images
from husk.engine.model.container import Container, MountPoint
from husk.engine.model.container_config import ContainerConfig, HostConfig, Mount, VolumeOptions
from husk.engine.volumes.service import Taking, Volumes
from husk.engine.volumes.spec import VolumeSpec
from husk.errors import Conflict, InvalidParameter, NotFound
from husk.runtime.assembly import sources
from husk.runtime.assembly.root import OpenDirectory, has_directory
from husk.runtime.assembly.staging import StagedPart

# Directories of images, of those that were asked about last.
_REMEMBERED = 100


class Stager:
    """Preparer of what a container's mounts are made of: volumes, parts of volumes, images."""

    def __init__(self, assembly: Assembly, layers: Layers, volumes: MountedVolumes) -> None:
        self._assembly = assembly
        self._layers = layers
        self._volumes = volumes

    async def mount(self, record: Container) -> None:
        await self._volumes.mount(record)
        for point in record.mounts:
            if point.staged and point.type == "volume":
                # It may be one of another host's. Asked first: what mounts cannot be given up half-way.
                await self._assembly.touch(point.source, partial(os.path.exists, point.source))
        if parts := {number: self._part(point) for number, point in enumerate(record.mounts) if point.staged}:
            await asyncio.to_thread(self._assembly.stage, record.id, parts)

    async def unmount(self, record: Container) -> None:
        """Safe to call twice, and for a container that never ran."""
        if any(point.staged for point in record.mounts):
            await asyncio.to_thread(self._assembly.unstage, record.id)
        await self._volumes.unmount(record)

    def _part(self, point: MountPoint) -> StagedPart:
        if point.type == "image":
            return StagedPart(layers=tuple(self._layers.lower(point.layers)), subpath=point.subpath)
        return StagedPart(tree=point.source.removesuffix("/" + point.subpath), subpath=point.subpath)


class Roots:
    """Mounts of containers' roots: one is there for whoever works in it, and is unmounted behind the last one."""

    def __init__(self, index: ContainerIndex, assembly: Assembly, layers: Layers, stager: Stager) -> None:
        self._index = index
        self._assembly = assembly
        self._layers = layers
        self._stager = stager
        self._tasks = Tasks()

    def lower(self, record: Container) -> list[str]:
        """List the directories under a container's own changes, topmost first. Blocks for an image that is new here."""
        image = self.image(record)
        return [str(self._assembly.mount_points.of(image)), *image]

    def image(self, record: Container) -> list[str]:
        """The directories of its image, topmost first."""
        return list(self._layers.lower(record.layers))

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
            await asyncio.to_thread(self.mount_now, instance.record)
        if not _in_use(instance):
            await self._stager.mount(instance.record)

    def mount_now(self, record: Container) -> None:
        """Mount it, whoever needs it; blocks."""
        self._assembly.root(record.id).mount(self.lower(record), volatile=record.host_config.auto_remove)

    async def _give_back(self, instance: Instance) -> None:
        async with instance.lock:
            await self._leave(instance)

    async def _leave(self, instance: Instance) -> None:
        instance.root_users -= 1
        if not instance.root_users and not _in_use(instance):
            await asyncio.to_thread(self._assembly.root(instance.id).unmount)
            await self._stager.unmount(instance.record)


class MountTaker:
    """Gives a new container its mount points, with the volumes, images and directories that they name."""

    def __init__(
        self, index: ContainerIndex, assembly: Assembly, roots: Roots, volumes: Volumes, images: Images
    ) -> None:
        self._index = index
        self._assembly = assembly
        self._roots = roots
        self._volumes = volumes
        self._images = images
        self._tasks = Tasks()
        self._directories: dict[tuple[tuple[str, ...], str], None] = {}

    async def take(
        self, container_id: str, config: ContainerConfig, host_config: HostConfig, taking: Taking
    ) -> list[MountPoint]:
        """The mount points of a new container, their volumes taken and those without a name made."""

        wanted = wanted_mounts(host_config)
        own = {point.destination for point, _ in wanted}
        points = [point for point in inherited(host_config, self._mounts_of) if point.destination not in own]
        # Nothing is waited for since the other containers were found: with the last of them their volumes may go.
        for point in points:
            if point.type == "volume":
                self._share(point.name, taking)
        for point, mount in wanted:
            points.append(await self._complete(point, mount, taking))
        for point in declared(config, host_config, [point.destination for point in points]):
            points.append(await self._take_volume(point, VolumeSpec(driver=host_config.volume_driver), taking))
        # Last, and nothing is waited for until the caller holds them: an image may be removed at any time.
        staging = self._assembly.paths.staging(container_id)
        return [
            self._with_image(point, str(staging / str(number))) if point.type == "image" else point
            for number, point in enumerate(points)
        ]

    def _with_image(self, point: MountPoint, source: str) -> MountPoint:
        if point.layers:
            return replace(point, source=source)
        image = self._images.find(point.name)
        return replace(point, source=source, image_id=image.id, layers=image.chain_ids)

    def _mounts_of(self, name: str) -> Sequence[MountPoint]:
        try:
            return self._index.find(name).record.mounts
        except NotFound as error:
            # Clients take a 404 for a missing image.
            raise InvalidParameter(error.message) from error

    def _share(self, name: str, taking: Taking) -> None:
        try:
            taking.share(name)
        except NotFound as error:
            # It goes with the other container at this moment.
            raise InvalidParameter(error.message) from error

    async def _complete(self, point: MountPoint, mount: Mount, taking: Taking) -> MountPoint:
        if point.type == "volume":
            options = mount.volume_options or VolumeOptions()
            driver = options.driver_config
            spec = VolumeSpec(
                name=point.name,
                driver=driver.name if driver else "",
                options=driver.options if driver else None,
                labels=options.labels,
            )
            return await self._take_volume(point, spec, taking)
        if point.type == "image":
            self._images.find(point.name)
        elif point.type == "bind":
            return await self._assembly.touch(point.source, partial(self._complete_bind, point, mount))
        return point

    async def _take_volume(self, point: MountPoint, spec: "VolumeSpec", taking: Taking) -> MountPoint:
        volume = await taking.take(spec)
        source = str(self._volumes.mountpoint(volume) / point.subpath)
        return replace(point, name=volume.name, driver=volume.driver, source=source)

    def _complete_bind(self, point: MountPoint, mount: Mount) -> MountPoint:
        if not point.makes_source and not sources.exists(point.source):
            raise sources.missing(point.source)
        data_root = self._assembly.paths.data_root
        if not _overlaps(Path(point.source), data_root):
            return point
        # Such a mount brings those of other containers along, and must let go of them when they end.
        asked = mount.bind_options.propagation if mount.bind_options is not None else ""
        if asked and asked not in ("rslave", "rshared"):
            raise InvalidParameter(
                'invalid mount config: must use either propagation mode "rslave" or "rshared" when mount source is '
                f'within the daemon root, daemon root: "{data_root}", bind mount source: "{point.source}", '
                f'propagation: "{asked}"'
            )
        if not asked and sources.is_shared(point.source):
            return replace(point, propagation="rslave")
        return point

    async def prepare(self, record: Container, taking: Taking) -> None:
        """Make its working directory, and give its empty volumes their first content. Goes on to its end when it is
        cancelled: a thread that mounts cannot be stopped, and what it mounts must be unmounted after it."""
        await self._tasks.to_its_end(self._prepare(record, taking), f"fill the volumes of {record.id[:12]}")

    async def _has_directory(self, lower: tuple[str, ...], path: str) -> bool:
        """Layers do not change, and many containers are made of the same."""
        if (lower, path) in self._directories:
            return True
        found = await asyncio.to_thread(has_directory, lower, path)
        if found:
            while len(self._directories) >= _REMEMBERED:
                del self._directories[next(iter(self._directories))]
            self._directories[lower, path] = None
        return found

    async def _prepare(self, record: Container, taking: Taking) -> None:
        path = record.config.working_dir
        needs_directory = bool(path) and not await self._has_directory(tuple(self._roots.image(record)), path)
        points = [
            point for point in record.mounts if point.copies and await self._volumes.may_fill(taking.taken[point.name])
        ]
        if not points and not needs_directory:
            return
        root = self._assembly.root(record.id)
        try:
            await asyncio.to_thread(self._roots.mount_now, record)
            if needs_directory:
                await asyncio.to_thread(root.make_directory, path)
            for point in points:
                source = await asyncio.to_thread(_open_directory, root, point.destination)
                if source is not None:
                    with contextlib.closing(source):
                        await self._volumes.fill(taking.taken[point.name], source.fd)
        finally:
            await asyncio.to_thread(root.unmount)


def _in_use(instance: Instance) -> bool:
    """Return True if the container's own process needs the root."""
    return instance.record.state.status in ("running", "paused")


def _open_directory(root: Root, path: str) -> OpenDirectory | None:
    """The directory of an image where a volume is to be; None if it has none there."""
    try:
        return root.open_directory(path)
    except NotADirectoryError as error:
        raise InvalidParameter(f"cannot mount volume over existing file, file exists {path}") from error


def _overlaps(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)
