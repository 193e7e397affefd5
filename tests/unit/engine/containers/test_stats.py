"""Resources that a container uses: how many samples a client gets, and what is in them."""

from collections.abc import Iterator

import pytest

from husk.engine.containers import stats
from husk.engine.containers.index import Exit, Instance
from husk.engine.containers.stats import Mode, Statistics, StatsSample
from husk.engine.model.container_config import HostConfig
from husk.runtime.assembly import usage as usages
from husk.runtime.assembly.usage import CPU, Interface, MemoryUsage, ResourceUsage
from tests.support.room import Room
from tests.unit.engine.records import container

ETH0 = {"eth0": Interface(1, 1, 0, 0, 2, 1, 0, 0)}


@pytest.fixture(autouse=True)
def counters(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The control groups that were read; each reading has used one nanosecond more."""
    read: list[str] = []

    def usage(path: str) -> ResourceUsage:
        read.append(path)
        return ResourceUsage(
            cpu=CPU(total=len(read)), memory=MemoryUsage(), pids=1, pids_limit=0, block={}, cgroup_v2=True
        )

    monkeypatch.setattr(stats, "PERIOD", 0.001)
    monkeypatch.setattr(usages, "usage", usage)
    monkeypatch.setattr(usages, "interfaces", lambda pid: ETH0)
    yield read


async def samples(room: Room, instance: Instance, mode: Mode) -> list[StatsSample]:
    found = Statistics(room.index, room.host.paths).samples(instance.id, mode)
    return [one async for one in found]


async def test_one_shot_is_one_reading_without_a_difference(room: Room) -> None:
    instance = await room.started(container())
    (only,) = await samples(room, instance, "one-shot")
    assert only.now is not None and only.now.usage.cpu.total == 1
    assert (only.before, only.before_ns) == (None, 0)
    assert only.now.interfaces == ETH0


async def test_once_has_the_reading_before_it(room: Room, counters: list[str]) -> None:
    instance = await room.started(container())
    (only,) = await samples(room, instance, "once")
    assert only.now is not None and only.before is not None
    assert (only.before.total, only.now.usage.cpu.total) == (1, 2)
    assert only.before_ns < only.now.time_ns
    assert set(counters) == {room.host.paths.cgroup(instance.id, "")}


async def test_a_stream_lasts_until_the_container_is_removed(room: Room) -> None:
    instance = await room.started(container())
    seen: list[StatsSample] = []
    async for sample in Statistics(room.index, room.host.paths).samples(instance.id, "stream"):
        seen.append(sample)
        if len(seen) == 3:
            instance.announce_removal(Exit(0))
    assert [one.before.total for one in seen if one.before] == [1, 2, 3]


@pytest.mark.parametrize("mode", ["once", "one-shot"])
async def test_one_that_does_not_run_uses_nothing(room: Room, mode: Mode, counters: list[str]) -> None:
    instance = await room.add(container())
    (only,) = await samples(room, instance, mode)
    assert only == StatsSample(instance.record)
    assert counters == []


async def test_a_stream_of_one_that_ends_goes_on_without_figures(room: Room) -> None:
    instance = await room.started(container())
    seen: list[bool] = []
    async for sample in Statistics(room.index, room.host.paths).samples(instance.id, "stream"):
        seen.append(sample.now is not None)
        if len(seen) == 1:
            await room.ended(instance, 0)
        elif len(seen) == 3:
            instance.announce_removal(Exit(0))
    assert seen == [True, False, False]


async def test_the_hosts_interfaces_are_not_the_containers(room: Room) -> None:
    instance = await room.started(container(host_config=HostConfig(network_mode="host")))
    (only,) = await samples(room, instance, "one-shot")
    assert only.now is not None and only.now.interfaces is None
