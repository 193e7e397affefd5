"""Operations on volumes, of the edge and of containers that take and leave them."""

import asyncio
import contextlib
import logging
import os
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

import msgspec

from husk.aio import threads
from husk.aio.tasks import Tasks
from husk.config import Config
from husk.engine.model.container import KIND as CONTAINER
from husk.engine.model.container import Container, MountPoint
from husk.engine.model.events import Events
from husk.engine.model.filters import Filters
from husk.engine.model.volume import Volume, VolumeUsage
from husk.engine.volumes.listing import prunable, select
from husk.engine.volumes.locks import Locks
from husk.engine.volumes.spec import VolumeSpec, draft
from husk.errors import Conflict, HuskError, NotFound, SystemFault, Unavailable
from husk.runtime.assembly.foreign_paths import ForeignPaths
from husk.storage.state.store import Change, StateStore
from husk.storage.volumes import options
from husk.storage.volumes.store import VolumeStore

KIND = "volume"
# Seconds in which what is in a mount of another file system is counted.
_COUNTING = 60.0

log = logging.getLogger(__name__)


class PrunedVolumes(msgspec.Struct, frozen=True):
    names: list[str]
    reclaimed: int


class Volumes:
    def __init__(
        self,
        store: VolumeStore,
        state: StateStore,
        events: Events,
        records: Iterable[Volume],
        containers: Callable[[], Iterable[Container]],
    ) -> None:
        self._store = store
        self._foreign = ForeignPaths()
        self._counted = ForeignPaths(_COUNTING)
        self._state = state
        self._events = events
        self._containers = containers
        self._by_name = {volume.name: volume for volume in records}
        self._locks = Locks()
        self._emptying = asyncio.Lock()
        self._held: Counter[str] = Counter()
        self._tasks = Tasks()
        # Who has it mounted: the containers that run. Those that a former daemon left running count until `restore`
        # has found out what became of them.
        self._users: defaultdict[str, set[str]] = defaultdict(set)
        for record in containers():
            if record.state.status in ("running", "paused"):
                for point in _volume_points(record):
                    self._users[point.name].add(record.id)

    @classmethod
    async def open(
        cls, config: Config, state: StateStore, events: Events, containers: Callable[[], Iterable[Container]]
    ) -> "Volumes":
        records = list(state.records(KIND, Volume).values())
        known = {volume.name for volume in records} | state.aside(KIND)
        store = await asyncio.to_thread(VolumeStore.open, config.data_root / "volumes", known)
        return cls(store, state, events, records, containers)

    async def restored(self) -> None:
        """The containers are restored: unmount what none of them uses, and go on deleting what is gone."""
        for name in await asyncio.to_thread(self._store.all_mounted):
            if not self._users.get(name):
                async with self._locks.hold(name):
                    await threads.outside(self._store.unmount, name)
        self._tasks.spawn(self._empty_trash(), "delete volumes")

    async def close(self) -> None:
        self._store.close()
        await self._tasks.join()

    # --- looking

    def find(self, name: str) -> Volume:
        if (volume := self._by_name.get(name)) is None:
            raise _no_such(name)
        return volume

    def mountpoint(self, volume: Volume) -> Path:
        return self._store.data(volume.name)

    def listing(self, filters: Filters) -> list[Volume]:
        return select(self._by_name.values(), self._used(), filters)

    async def usage(self) -> list[VolumeUsage]:
        """Measure each volume's size on disk; those that are mounts of their own are measured where they are."""
        counts = self._used()
        return [
            VolumeUsage(volume, await self._size(volume), counts[volume.name])
            for volume in list(self._by_name.values())
        ]

    async def _size(self, volume: Volume) -> int:
        """-1, as with dockerd, where nobody can tell: what is mounted there does not answer all questions."""
        if not volume.options:
            return await threads.trees(self._store.size, volume.name)
        place = str(self.mountpoint(volume))
        try:
            await self._foreign.touch(place, partial(os.path.exists, place))
            return await self._counted.touch(place, partial(self._store.size, volume.name))
        except Unavailable as error:
            log.warning("the size of volume %s is not known: %s", volume.name, error.message)
            return -1

    def _used(self) -> Counter[str]:
        """Count the containers that have each volume."""
        return Counter(name for record in self._containers() for name in {p.name for p in _volume_points(record)})

    def _users_of(self, name: str) -> list[str]:
        return [record.id for record in self._containers() if any(p.name == name for p in _volume_points(record))]

    # --- making and removing

    async def create(self, spec: VolumeSpec) -> Volume:
        """Make a volume, or find the one that has the name already."""

        volume = draft(spec)
        async with self._locks.hold(volume.name):
            return await self._create(volume)

    async def _create(self, volume: Volume) -> Volume:
        if (existing := self._by_name.get(volume.name)) is not None:
            return existing
        if volume.name in self._state.aside(KIND):
            raise Conflict(f"the record of volume {volume.name} cannot be read: see husk doctor --check-store")
        fresh = await asyncio.to_thread(self._store.create, volume.name)
        try:
            await self._state.add(_written(volume))
        except BaseException:
            # What was there before is somebody's data, whoever's.
            await asyncio.shield(self._drop([volume] if fresh else []))
            raise
        self._add(volume)
        return volume

    def _add(self, volume: Volume) -> None:
        self._by_name[volume.name] = volume
        self._publish("create", volume)

    async def remove(self, name: str, force: bool) -> None:
        """`force` says that it is no error if there is no such volume; one in use is never removed."""
        try:
            await self._remove(self.find(name))
        except NotFound:
            if not force:
                raise

    async def _remove(self, volume: Volume) -> None:
        """Remove this one, and not another that has come to its name while this waited."""
        name = volume.name
        async with self._locks.hold(name):
            if self._by_name.get(name) is not volume:
                raise _no_such(name)
            if (users := self._users_of(name)) or self._held[name]:
                raise Conflict(f"remove {name}: volume is in use - [{', '.join(users)}]")
            async with self._going([volume]) as changes:
                await self._state.commit(*changes)

    async def prune(self, filters: Filters, everything: bool) -> PrunedVolumes:
        if self._state.aside(CONTAINER):
            raise Conflict(
                "nobody can tell which volumes are in use while the record of a container cannot be read: see husk "
                "doctor --check-store"
            )
        names, reclaimed = [], 0

        for volume in prunable(list(self._by_name.values()), self._used(), filters, everything):
            size = await threads.trees(self._store.size, volume.name)
            with contextlib.suppress(Conflict, NotFound):
                await self._remove(volume)
                names.append(volume.name)
                reclaimed += size
        self._events.publish("volume", "prune", "", {"reclaimed": str(reclaimed)})
        return PrunedVolumes(names, reclaimed)

    @contextlib.asynccontextmanager
    async def going_with(self, record: Container, volumes: bool) -> AsyncIterator[list[Change]]:
        """The changes to commit in the transaction that removes a container, for its unnamed volumes to go as well."""
        names = {point.name for point in _volume_points(record) if volumes and point.anonymous}
        # Of two containers that go at once the later one sees that it is the last; nobody takes a name anew before
        # what was on disk is gone.
        async with self._locks.hold_all(names):
            going = [
                volume
                for name in names
                if (volume := self._by_name.get(name)) is not None
                and {record.id}.issuperset(self._users_of(name))
                and not self._held[name]
            ]
            async with self._going(going) as changes:
                yield changes

    @contextlib.asynccontextmanager
    async def _going(self, volumes: list[Volume]) -> AsyncIterator[list[Change]]:
        """Nobody can take the volumes any more; when the block has committed the changes, what is on disk goes."""
        for volume in volumes:
            self._by_name.pop(volume.name, None)
        try:
            yield [Change(KIND, volume.name, None) for volume in volumes]
        except BaseException:
            self._by_name.update({volume.name: volume for volume in volumes})
            raise
        for volume in volumes:
            self._publish("destroy", volume)
        await self._drop(volumes)

    async def _empty_trash(self) -> None:
        async with self._emptying:
            await threads.removals(self._store.empty_trash)

    def _discard(self, name: str) -> None:
        self._store.unmount(name)
        self._store.discard(name)

    # --- for a container that is being made

    @contextlib.asynccontextmanager
    async def taking(self) -> AsyncIterator["Taking"]:
        """While the block lasts nobody removes the volumes that it takes; those without a name go unless `done`."""
        taking = Taking(self)
        try:
            yield taking
        finally:
            self._held.subtract(taking.names)
            self._held += Counter()
            await asyncio.shield(self._drop(taking.drafts))

    async def _drop(self, drafts: list[Volume]) -> None:
        for volume in drafts:
            await threads.removals(self._discard, volume.name)
        if drafts:
            await self._empty_trash()

    async def take(self, spec: VolumeSpec) -> Volume:
        """For `Taking`: the volume, made if there is none, and held."""

        volume = draft(spec)
        async with self._locks.hold(volume.name):
            volume = await self._create(volume)
            self._held[volume.name] += 1
            return volume

    def share(self, name: str) -> Volume:
        """For `Taking`: a volume that another container has, held before anybody can remove it."""
        volume = self.find(name)
        self._held[name] += 1
        return volume

    async def make_draft(self, spec: VolumeSpec) -> Volume:
        """For `Taking`: a volume that does not exist yet, with its directory."""

        volume = draft(spec._replace(name=""))
        await asyncio.to_thread(self._store.create, volume.name)
        return volume

    def adopt(self, volumes: Iterable[Volume]) -> None:
        """For `Taking`: drafts that are in the store now."""
        for volume in volumes:
            self._add(volume)

    async def fill(self, volume: Volume, source: int) -> None:
        """Give the volume the content of an open directory if it is empty."""

        async with self._locks.hold(volume.name):
            call = options.mount_call(volume.options)
            if call is None:
                await threads.trees(self._store.fill, volume.name, source)
                return
            await self._mount(volume)
            try:
                await threads.trees(self._store.fill, volume.name, source)
            finally:
                if not self._users.get(volume.name):
                    await threads.outside(self._store.unmount, volume.name)

    async def may_fill(self, volume: Volume) -> bool:
        """Return True if it is worth to look what the image has: not if the volume is known to have content."""
        return bool(volume.options) or await asyncio.to_thread(self._store.is_empty, volume.name)

    # --- for a container that starts and ends

    async def mount(self, record: Container) -> None:
        """The container is about to run: its volumes are there, and mounted where they have options."""
        for point in _volume_points(record):
            async with self._locks.hold(point.name):
                volume = self.find(point.name)
                try:
                    await self._mount(volume)
                except HuskError as error:
                    place = self._store.data(volume.name)
                    raise SystemFault(f"error while mounting volume '{place}': {error.message}") from error
                if record.id not in self._users[volume.name]:
                    self._users[volume.name].add(record.id)
                    self._publish("mount", volume, _mounted(record, point))

    async def unmount(self, record: Container) -> None:
        """The container has ended. Safe to call twice, and for one that never ran."""
        for point in _volume_points(record):
            users = self._users.get(point.name)
            if users is None or record.id not in users:
                continue
            async with self._locks.hold(point.name):
                users.discard(record.id)
                volume = self._by_name.get(point.name)
                if not users:
                    self._users.pop(point.name, None)
                    if volume is not None and volume.options:
                        await threads.outside(self._store.unmount, point.name)
                if volume is not None:
                    self._publish("unmount", volume, {"container": record.id})

    async def _mount(self, volume: Volume) -> None:
        call = options.mount_call(volume.options)
        if call is None:
            # Somebody may have taken the directory away; a container needs one.
            await asyncio.to_thread(self._store.create, volume.name)
            return
        if call.source.startswith("/"):
            # A part of the host: what mounts cannot be given up half-way, so it is asked first.
            await self._foreign.touch(call.source, partial(os.path.exists, call.source))
        if host := options.address_of(call):
            call = options.with_address(call, await threads.outside(options.resolve, host))
        await threads.outside(self._store.mount, volume.name, call)

    def _publish(self, action: str, volume: Volume, attributes: Mapping[str, str] | None = None) -> None:
        self._events.publish("volume", action, volume.name, {**(attributes or {}), "driver": volume.driver})


class Taking:
    """The volumes of one container that is being made."""

    def __init__(self, volumes: Volumes) -> None:
        self._volumes = volumes
        self.names: list[str] = []
        self.drafts: list[Volume] = []
        self.taken: dict[str, Volume] = {}

    async def take(self, spec: VolumeSpec) -> Volume:
        if not spec.name:
            volume = await self._volumes.make_draft(spec)
            self.drafts.append(volume)
        else:
            volume = await self._volumes.take(spec)
            self.names.append(volume.name)
        self.taken[volume.name] = volume
        return volume

    def share(self, name: str) -> None:
        self.taken[name] = self._volumes.share(name)
        self.names.append(name)

    @property
    def changes(self) -> list[Change]:
        """To commit together with the container's record."""
        return [_written(volume) for volume in self.drafts]

    def done(self) -> None:
        """The changes are in the store."""
        self._volumes.adopt(self.drafts)
        self.drafts = []


def _no_such(name: str) -> NotFound:
    return NotFound(f"get {name}: no such volume")


def _written(volume: Volume) -> Change:
    return Change(KIND, volume.name, msgspec.json.encode(volume))


def _volume_points(record: Container) -> list[MountPoint]:
    return [point for point in record.mounts if point.type == "volume"]


def _mounted(record: Container, point: MountPoint) -> dict[str, str]:
    return {
        "container": record.id,
        "destination": point.destination,
        "propagation": point.propagation,
        "read/write": "true" if point.rw else "false",
    }
