"""The containers of the tasks that others are led to, by service; kept as tasks, addresses and nodes change.

Those of this node are looked at each time: a container that comes to a network tells nobody here. Of those on other
hosts only what has changed is made anew, however many there are.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec import structs

from husk.engine.model.container import Container, Endpoint
from husk.engine.model.container_config import EndpointRequest
from husk.engine.networks.sharing import Place
from husk.errors import HuskError
from husk.swarm.model.services import Task, is_reached
from husk.swarm.network.allocator import OverlayAllocator
from husk.swarm.spec.network_services import Elsewhere, OnNetworks
from husk.swarm.state.records import SwarmRecords


class ReachableTasks:
    def __init__(
        self, store: SwarmRecords, node_id: Callable[[], str], find_container: Callable[[str], Container]
    ) -> None:
        """`node_id` is that of this node: only its own tasks have containers that can be found."""
        self._store = store
        self._node_id = node_id
        self._find_container = find_container
        # By service, then by task; and the service of each of these tasks.
        self._found: dict[str, dict[str, OnNetworks]] = {}
        self._service_of: dict[str, str] = {}
        # Tasks of which something may have changed since the last look, and those that are looked at each time.
        self._changed = set(store.tasks)
        self._own: set[str] = set()
        # What the last look was made of besides.
        self._node = ""
        self._shared: OverlayAllocator | None = None
        self._names: Mapping[str, str] = {}
        self._addresses: Mapping[str, str] = {}
        store.index.changed.subscribe(self._changed.add)

    def of(self, service_id: str) -> Collection[OnNetworks]:
        return self._found.get(service_id, {}).values()

    @property
    def by_service(self) -> Mapping[str, Collection[OnNetworks]]:
        return {id: found.values() for id, found in self._found.items()}

    def look(self, shared: OverlayAllocator | None, names: Mapping[str, str]) -> set[str]:
        """Bring it up to the records; the services of which something may be another now. `names` are those of all
        networks by their ids, `shared` knows the addresses on those that hosts share."""
        if (shared, names, self._node_id()) != (self._shared, self._names, self._node):
            self._begin(shared, names)
        addresses = {id: node.status.addr for id, node in self._store.nodes.items()}
        if shared is not None and addresses != self._addresses:
            for id in addresses.keys() | self._addresses.keys():
                if addresses.get(id) != self._addresses.get(id):
                    self._changed.update(place.task for place in shared.on(id) if place.task)
        self._addresses = addresses
        touched = set[str]()
        for task_id in self._changed | self._own:
            touched |= self._update(task_id)
        self._changed.clear()
        return touched

    def _begin(self, shared: OverlayAllocator | None, names: Mapping[str, str]) -> None:
        if self._shared is not shared:
            if self._shared is not None:
                self._shared.observers.remove(self._place_changed)
            if shared is not None:
                shared.observers.append(self._place_changed)
        self._shared, self._names, self._node = shared, dict(names), self._node_id()
        self._changed |= {*self._store.tasks, *self._service_of}

    def _place_changed(self, place: Place) -> None:
        if place.task:
            self._changed.add(place.task)

    def _update(self, task_id: str) -> set[str]:
        """The services that a task was of, and is."""
        task = self._store.tasks.get(task_id)
        found = self._find(task) if task is not None and is_reached(task) else None
        if task is None or not is_reached(task):
            self._own.discard(task_id)
        former = self._service_of.pop(task_id, None)
        touched = {former} if former is not None else set[str]()
        if former is not None and (found is None or task is None or task.service_id != former):
            del self._found[former][task_id]
            if not self._found[former]:
                del self._found[former]
        if task is not None and found is not None:
            self._found.setdefault(task.service_id, {})[task_id] = found
            self._service_of[task_id] = task.service_id
            touched.add(task.service_id)
        return touched

    def _find(self, task: Task) -> OnNetworks | None:
        places = self._shared.places_of_task(task.id) if self._shared is not None else []
        if places and places[0].node != self._node:
            self._own.discard(task.id)
            return self._elsewhere(task, places)
        if task.node_id != self._node:
            self._own.discard(task.id)
            return None
        self._own.add(task.id)
        try:
            return self._find_container(task.status.container_id)
        except HuskError:
            return None

    def _elsewhere(self, task: Task, places: Sequence[Place]) -> OnNetworks:
        """A task on another host, as its addresses tell."""
        endpoints: dict[str, Endpoint] = {}
        for place in places:
            if (network := self._names.get(place.network)) is not None:
                known = endpoints.get(network) or Endpoint(
                    network_name=network, network_id=place.network, request=EndpointRequest()
                )
                kind = "ip6_address" if ":" in place.address else "ip_address"
                endpoints[network] = structs.replace(known, **{kind: place.address})
        node = self._store.nodes.get(places[0].node)
        return Elsewhere(task.name, endpoints, node.status.addr if node is not None else "")
