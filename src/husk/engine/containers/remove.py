"""Remove a container, or all that do not run: the record goes first, then what it has on the disk."""

import logging
from collections.abc import Awaitable, Callable

from msgspec import Struct
from msgspec.structs import replace

from husk.aio import threads
from husk.aio.tasks import Tasks
from husk.engine.containers import states
from husk.engine.containers.drivers import Assembly, Volumes
from husk.engine.containers.index import ContainerIndex, Exit, Instance, Publish
from husk.engine.containers.release import Releaser
from husk.engine.containers.stop import Stopper
from husk.engine.model.events import Events
from husk.engine.model.filters import Filters
from husk.errors import Conflict, HuskError, NotFound
from husk.watch import Watch

log = logging.getLogger(__name__)

_STOP_FIRST = ": stop the container before removing or force remove"


class ContainerRemover:
    def __init__(
        self,
        *,
        index: ContainerIndex,
        assembly: Assembly,
        releaser: Releaser,
        stopper: Stopper,
        volumes: Volumes,
        publish: Publish,
        release_layers: Callable[[list[str]], Awaitable[object]],
        watch: Watch | None = None,
    ) -> None:
        """`release_layers` is told which layers a container that goes no longer needs."""
        self._index = index
        self._assembly = assembly
        self._releaser = releaser
        self._stopper = stopper
        self._volumes = volumes
        self._publish = publish
        self._release_layers = release_layers
        self._watch = watch or Watch()
        self._tasks = Tasks()

    async def remove(self, instance: Instance, force: bool, volumes: bool = False) -> None:
        """Remove it; `volumes` takes the volumes without a name along, as a container that removes itself does."""
        try:
            await self._remove(instance, force, volumes)
        finally:
            if force and self._index.present(instance):
                instance.life = states.doomed(instance.life, False)
                async with instance.lock:
                    await self._index.settle(instance, instance.draft.record)
                    await self._releaser.clear(instance)

    async def _remove(self, instance: Instance, force: bool, volumes: bool) -> None:
        while self._index.present(instance):
            record = instance.record
            if record.state.running:
                if not force:
                    paused = record.state.status == "paused"
                    advice = " and must be unpaused first" if paused else _STOP_FIRST
                    raise Conflict(
                        f'cannot remove container "{record.name}": container is {record.state.status}{advice}'
                    )
                instance.life = states.doomed(instance.life, True)
                with self._releaser.removal():
                    await self._stopper.end_for_removal(instance)
                    await self._remove_ended(instance, volumes)
            else:
                await self._remove_ended(instance, volumes)

    async def _remove_ended(self, instance: Instance, volumes: bool) -> None:
        async with instance.lock:
            # Somebody may have started it while this waited for the lock.
            if self._index.present(instance) and not instance.record.state.running:
                await self.remove_locked(instance, volumes or instance.record.host_config.auto_remove)

    async def remove_locked(self, instance: Instance, volumes: bool, exit: Exit | None = None) -> None:
        """With its lock held, and no process. What is left of a removal that was cut off is swept at the next start.

        `exit` is what those are told who wait for it, where that is more than its exit code."""
        with self._watch.action("delete", container=instance.id):
            # Whoever is cancelled meanwhile: store, memory and host say the same afterwards.
            deleting = self._delete(instance, volumes, exit or Exit(instance.record.state.exit_code))
            await self._tasks.to_its_end(deleting, f"delete {instance.id[:12]}")

    async def _delete(self, instance: Instance, volumes: bool, exit: Exit) -> None:
        record = instance.draft.record
        instance.believe(replace(record, state=states.removing(record.state)))
        instance.rest()
        await self._releaser.release(instance)
        async with self._volumes.going_with(record, volumes) as changes:
            await self._index.delete(instance, *changes)
        goes_later = self._releaser.clear_later(instance)
        try:
            if not (goes_later or instance.life == states.DISCARDED):
                await threads.removals(self._assembly.discard, record.id)
            await self._release_layers(record.used_layers)
        except (HuskError, OSError) as error:
            # It has no record any more; the next start sweeps what is left of it.
            log.warning("container %s is removed, and not all that it used: %s", record.id[:12], error)
        self._publish(record, "destroy")
        instance.switchboard.finish()
        instance.announce_removal(exit)


class PrunedContainers(Struct, frozen=True):
    ids: list[str]
    reclaimed: int


class ContainerPruner:
    def __init__(self, index: ContainerIndex, assembly: Assembly, remover: ContainerRemover, events: Events) -> None:
        self._index = index
        self._assembly = assembly
        self._remover = remover
        self._events = events
        self._busy = False

    async def prune(self, filters: Filters) -> PrunedContainers:
        """Remove every container that does not run and that the filters (`until`, `label`, `label!`) choose."""
        until = filters.until()
        if self._busy:
            raise Conflict("a prune operation is already running")
        self._busy = True
        ids, reclaimed = [], 0
        try:
            for instance in self._index:
                if self._chosen(instance, filters, until):
                    size = await threads.trees(self._assembly.root(instance.id).usage)
                    try:
                        await self._remover.remove(instance, force=False)
                    except (Conflict, NotFound):
                        continue  # it has been started, or removed, a moment ago
                    ids.append(instance.id)
                    reclaimed += size
        finally:
            self._busy = False
        self._events.publish("container", "prune", "", {"reclaimed": str(reclaimed)})
        return PrunedContainers(ids, reclaimed)

    def _chosen(self, instance: Instance, filters: Filters, until: int | None) -> bool:
        record = instance.record
        return (
            self._index.present(instance)
            and not record.state.running
            and (until is None or record.created_ns < until)
            and filters.matches_labels(record.config.labels)
        )
