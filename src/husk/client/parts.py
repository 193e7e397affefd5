"""The parts of a client that a program may never ask for: credentials, events, pruning, and all of swarms."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from husk.client.calls import Calls
from husk.client.credentials import Keychain
from husk.client.events import Event, events
from husk.client.moments import Moment
from husk.client.prune import Engine, Pruned, pruned
from husk.client.service_files import Configs, Secrets
from husk.client.services import Services, ServiceTasks
from husk.client.swarm import Nodes, Swarm


class Parts:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self.keychain = Keychain()
        self.swarm = Swarm(calls)
        self.nodes = Nodes(calls)
        self.services = Services(calls, self.keychain)
        self.tasks = ServiceTasks(calls)
        self.secrets = Secrets(calls)
        self.configs = Configs(calls)

    def events(self, since: Moment, until: Moment, filters: Mapping[str, Any] | None) -> AsyncIterator[Event]:
        return events(self._calls, since, until, filters)

    async def pruned(self, engine: Engine, all: bool, volumes: bool, filters: Mapping[str, Any]) -> Pruned:
        return await pruned(engine, all, volumes, filters)
