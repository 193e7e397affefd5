"""Which containers are no longer needed? Those that do not run, as far as the client's filters choose them."""

from typing import NamedTuple

from husk import threads
from husk.engine.containers.index import Index, Instance
from husk.engine.containers.lifecycle import Lifecycle
from husk.engine.containers.places import Places
from husk.engine.model.events import Events
from husk.engine.model.filters import Filters
from husk.errors import Conflict, NotFound


class Pruned(NamedTuple):
    ids: list[str]
    reclaimed: int


class ContainerPruner:
    def __init__(self, index: Index, places: Places, lifecycle: Lifecycle, events: Events) -> None:
        self._index = index
        self._places = places
        self._lifecycle = lifecycle
        self._events = events
        self._busy = False

    async def prune(self, filters: Filters) -> Pruned:
        """Remove every container that does not run and that the filters (`until`, `label`, `label!`) choose."""
        until = filters.until()
        if self._busy:
            raise Conflict("a prune operation is already running")
        self._busy = True
        ids, reclaimed = [], 0
        try:
            for instance in self._index:
                if self._chosen(instance, filters, until):
                    size = await threads.trees(self._places.root(instance.id).usage)
                    try:
                        await self._lifecycle.remove(instance, force=False)
                    except (Conflict, NotFound):
                        continue  # it has been started, or removed, a moment ago
                    ids.append(instance.id)
                    reclaimed += size
        finally:
            self._busy = False
        self._events.publish("container", "prune", "", {"reclaimed": str(reclaimed)})
        return Pruned(ids, reclaimed)

    def _chosen(self, instance: Instance, filters: Filters, until: int | None) -> bool:
        record = instance.record
        return (
            self._index.present(instance)
            and not record.state.running
            and (until is None or record.created_ns < until)
            and filters.matches_labels(record.config.labels)
        )
