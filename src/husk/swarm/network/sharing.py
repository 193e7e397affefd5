"""Lets the swarm's networks be those of all its hosts; and again those of this host alone."""

from collections.abc import Callable

from husk.engine.model.events import Event, Events
from husk.engine.networks.service import Networks
from husk.swarm.membership.cluster import Cluster
from husk.swarm.network.allocator import OverlayAllocator
from husk.swarm.network.endpoints import Endpoints
from husk.swarm.network.local_node import LocalManager
from husk.swarm.network.overlay_feed import OverlayFeed
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.sqlite import SqliteStore
from husk.swarm.state.transactions import News


class NetworkSharing:
    def __init__(
        self,
        store: SwarmRecords,
        cluster: Cluster,
        networks: Networks,
        endpoints: Endpoints,
        wake: Callable[[], None],
        events: Events,
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._networks = networks
        self._endpoints = endpoints
        self._wake = wake
        self._events = events
        self._observing = False

    def switched(self, told: News) -> None:
        """The records are in another store from now on, which tells all that it has."""
        former = self._endpoints.shared
        self.end()
        self.begin(told)
        if former is not None and self._endpoints.shared is not None:
            # Whoever is taking an address in this moment does so by the former one, and says there when it is done.
            self._endpoints.shared.underway = former.underway

    def begin(self, told: News | None = None) -> None:
        """Before there is any news of the store: the first of it tells all. Nothing is done where it has begun."""
        if self._endpoints.shared is not None:
            return
        here = LocalManager(self._cluster)
        shared = OverlayAllocator(self._store, here, self._wake)
        if isinstance(self._store.store, SqliteStore):
            shared.load(self._store.store)
        if told is not None:
            shared.take_in(told)
        self._endpoints.shared = shared
        self._endpoints.feed = OverlayFeed(
            store=self._store,
            cluster=here,
            networks=self._networks,
            shared=shared,
            unsaved=lambda: self._endpoints.unsaved,
        )
        self._networks.share(shared)
        if not self._observing:
            self._observing = True
            self._events.observe(self._left)
        self._wake()

    def end(self) -> None:
        """Safe to call twice."""
        if self._endpoints.shared is not None:
            self._endpoints.shared.deaf()
        if self._endpoints.feed is not None:
            self._endpoints.feed.close()
        self._endpoints.shared = self._endpoints.feed = None
        self._networks.share(None)

    def _left(self, event: Event) -> None:
        if event.type == "network" and event.action == "disconnect":
            self._wake()
