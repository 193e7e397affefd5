"""The swarm's networks on a worker: names, virtual addresses and published ports lead to tasks on all hosts.

All of it is made of what a manager tells (`network_share`), by what managers themselves make it of their records with
(`Endpoints`, `OverlayFeed`). Until one has told all, the host stays as the last daemon left it; while none is heard, as
it was told last.
"""

from collections.abc import Callable, Iterable

import msgspec

from husk.engine.containers.service import Containers
from husk.engine.model.events import Event, Events
from husk.engine.networks.service import Networks
from husk.swarm.model.services import Task
from husk.swarm.model.settings import DATA_PATH_PORT
from husk.swarm.network.endpoints import Endpoints
from husk.swarm.network.overlay_feed import OverlayFeed
from husk.swarm.network.remote import AddressCalls, RemoteNetworks
from husk.swarm.port.assignment_messages import NetworkNews
from husk.swarm.state.leader import NoLeadership
from husk.swarm.state.no_store import NoStore
from husk.swarm.state.records import SwarmRecords


class WorkerNetworks:
    def __init__(
        self,
        node_id: str,
        calls: AddressCalls,
        *,
        networks: Networks,
        containers: Containers,
        events: Events,
        own_tasks: Callable[[], Iterable[Task]],
        woken: Callable[[], None],
        managers: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        """`own_tasks` are this node's as it knows them itself; `woken`: something is new; `managers` tells by which
        addresses managers are asked."""
        self._networks = networks
        self._own_tasks = own_tasks
        self._woken = woken
        self._records = SwarmRecords(NoStore())
        self._records.leadership = NoLeadership()
        self._here = LocalWorker(node_id, self._records)
        self._shared = RemoteNetworks(self._records, self._here, woken, calls)
        self._endpoints = Endpoints(
            store=self._records, networks=networks, node_id=lambda: node_id, find_container=containers.find
        )
        self._endpoints.shared = self._shared
        self._endpoints.feed = OverlayFeed(
            store=self._records,
            cluster=self._here,
            networks=networks,
            shared=self._shared,
            unsaved=lambda: False,
            managers=managers,
        )
        self._coming: NetworkNews | None = None
        networks.share(self._shared)
        networks.seeker = self._shared.seek
        events.observe(self._left)

    def hear(self, news: NetworkNews | None) -> None:
        """Taken in when it is whole: half of it would cut connections. None: a manager begins anew."""
        if news is None:
            self._coming = None
            return
        if self._coming is None:
            self._coming = news
        else:
            self._coming.records += news.records
            self._coming.gone += news.gone
        if news.more:
            return
        whole, self._coming = self._coming, None
        self._here.told(news.data_path_port)
        self._shared.hear(whole)
        # At once: tasks that need them are told of next.
        self._networks.presence.learn(self._shared.networks)

    async def settle(self) -> bool:
        """Make this host lead to the tasks that run now; whether all do."""
        if not self._here.active:
            return True
        for task in self._own_tasks():
            if (known := self._records.tasks.get(task.id)) is not None:
                # How far it came, and that it is to end, is known here first.
                now = msgspec.structs.replace(known, status=task.status, desired_state=task.desired_state)
                self._records.learn(now)
        return await self._endpoints.settle()

    async def leave(self) -> None:
        """Nothing of them is left here."""
        self._shared.hear(NetworkNews(all=True))
        await self._endpoints.settle()
        self.close()

    def close(self) -> None:
        self._here.active = False
        self._networks.share(None)
        self._networks.seeker = None

    def _left(self, event: Event) -> None:
        if self._here.active and event.type == "network" and event.action == "disconnect":
            self._woken()


class LocalWorker:
    """`Here` of a worker: as a manager has told."""

    def __init__(self, node_id: str, records: SwarmRecords) -> None:
        self.node_id = node_id
        self._records = records
        self.active = False
        self.several = True
        self.data_path_port = DATA_PATH_PORT

    def told(self, data_path_port: int) -> None:
        self.active = True
        self.data_path_port = data_path_port or DATA_PATH_PORT

    @property
    def data_address(self) -> str:
        own = self._records.nodes.get(self.node_id)
        return own.data_address if own is not None else ""
