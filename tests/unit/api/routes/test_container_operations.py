"""The actions of a container and the resources it uses, over HTTP."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import ClientSession

from husk.engine.containers.stats import StatsSample
from husk.engine.containers.top import ProcessTable
from husk.engine.model.container_config import HostConfig
from tests.unit.api.fake_engine import FakeEngine, container


class Doubles:
    def __init__(self, engine: Any) -> None:
        self.modes: list[str] = []
        self.closed = 0
        self.limits: HostConfig | None = None
        self.record = engine.containers.add(container())
        engine.verbs.statistics = SimpleNamespace(samples=self.samples)
        engine.verbs.top = SimpleNamespace(top=self.top)
        engine.verbs.updater = SimpleNamespace(update=self.update)
        engine.container_pruner = SimpleNamespace(prune=self.prune)

    async def samples(self, reference: str, mode: str) -> AsyncIterator[StatsSample]:
        self.modes.append(mode)
        try:
            for _ in range(2):
                yield StatsSample(self.record)
        finally:
            self.closed += 1

    async def top(self, reference: str, arguments: str) -> ProcessTable:
        return ProcessTable(["PID", arguments], [])

    async def update(self, reference: str, limits: HostConfig) -> list[str]:
        self.limits = limits
        return []

    async def prune(self, filters: object) -> Any:
        return SimpleNamespace(ids=[], reclaimed=0)


@pytest.fixture
def doubles(engine: FakeEngine) -> Doubles:
    return Doubles(engine)


async def test_statistics_come_once_or_until_the_end(client: ClientSession, doubles: Doubles) -> None:
    streamed = await (await client.get("/containers/web/stats")).text()
    assert len(streamed.splitlines()) == 2
    assert (await (await client.get("/containers/web/stats?stream=0")).json())["name"] == "/web"
    await client.get("/containers/web/stats?stream=0&one-shot=1")
    await client.get("/v1.40/containers/web/stats?stream=0&one-shot=1")
    assert doubles.modes == ["stream", "once", "one-shot", "once"] and doubles.closed == 4


async def test_statistics_that_make_no_sense_are_not_measured(client: ClientSession, doubles: Doubles) -> None:
    assert (await client.get("/containers/web/stats?one-shot=1")).status == 400
    assert (await client.get("/containers/nobody/stats")).status == 404
    assert doubles.modes == []


async def test_empty_lists_are_null_as_in_go(client: ClientSession, doubles: Doubles) -> None:
    top = await (await client.get("/containers/web/top?ps_args=aux")).json()
    assert top == {"Processes": None, "Titles": ["PID", "aux"]}
    assert await (await client.post("/containers/web/update", json={})).json() == {"Warnings": None}
    pruned = await (await client.post("/containers/prune")).json()
    assert pruned == {"ContainersDeleted": None, "SpaceReclaimed": 0}


async def test_old_clients_do_not_change_what_they_do_not_know(client: ClientSession, doubles: Doubles) -> None:
    await client.post("/containers/web/update", json={"PidsLimit": 5, "Memory": 7})
    assert doubles.limits is not None and (doubles.limits.pids_limit, doubles.limits.memory) == (5, 7)
    await client.post("/v1.39/containers/web/update", json={"PidsLimit": 5})
    assert doubles.limits.pids_limit is None


async def test_what_cannot_be_pruned_by_is_refused(client: ClientSession, doubles: Doubles) -> None:
    assert (await client.post("/containers/prune", params={"filters": '{"name": ["x"]}'})).status == 400
