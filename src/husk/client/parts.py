"""The parts of a client that a program may never ask for: credentials, events, pruning, and all of swarms."""

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from husk.client import compose, watching
from husk.client.calls import Calls
from husk.client.container import Container
from husk.client.containers import Containers
from husk.client.credentials import Keychain
from husk.client.events import Event, events
from husk.client.logs import LogEntry
from husk.client.moments import Moment
from husk.client.prune import Engine, Pruned, pruned
from husk.client.service_files import Configs, Secrets
from husk.client.services import Services, ServiceTasks
from husk.client.stats import Stats
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

    async def named(
        self, all_of_them: Containers, named: Sequence[str | Container], project: str = ""
    ) -> list[Container]:
        """The containers that are named, those of a project, or all that run."""
        if project:
            label = {"label": f"com.docker.compose.project={project}"}
            return [*await all_of_them.list(all=True, filters=label), *await self._each(all_of_them, named)]
        return await self._each(all_of_them, named) if named else await all_of_them.list()

    async def _each(self, all_of_them: Containers, named: Sequence[str | Container]) -> list[Container]:
        return [each if isinstance(each, Container) else await all_of_them.get(each) for each in named]

    def stats(
        self, all_of_them: Containers, named: Sequence[str | Container], interval: float
    ) -> AsyncIterator[dict[str, Stats]]:
        return watching.samples(lambda: self.named(all_of_them, named), interval)

    def compose(
        self, engine: compose.Engine, file: Path, project: str, environment: Mapping[str, str] | None
    ) -> compose.Project:
        return compose.Project(engine, self._calls, file, project, environment)

    def entries(self, containers: Sequence[Container], **how: Any) -> AsyncIterator[LogEntry]:
        return watching.entries(containers, **how)
