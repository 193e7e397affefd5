"""Resources that a container uses: how many samples a client gets, and what is in them."""

import pytest

from husk.engine.containers.index import Exit, Instance
from husk.engine.containers.stats import Mode, Statistics, StatsSample
from husk.engine.model.container_config import HostConfig
from husk.kernel.accounting import CPU, Interface, MemoryUsage, ResourceUsage
from tests.support.room import Room
from tests.unit.engine.records import container

ETH0 = {"eth0": Interface(1, 1, 0, 0, 2, 1, 0, 0)}


class Counters:
    """Control groups, of which those that were read are noted; each reading has used one nanosecond more."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def usage(self, path: str) -> ResourceUsage:
        self.read.append(path)
        return ResourceUsage(
            cpu=CPU(total=len(self.read)), memory=MemoryUsage(), pids=1, pids_limit=0, block={}, cgroup_v2=True
        )

    def of(self, room: Room) -> Statistics:
        return Statistics(room.index, room.host.paths, self.usage, lambda pid: ETH0, period=0.001)


@pytest.fixture
def counters() -> Counters:
    return Counters()


async def samples(room: Room, instance: Instance, mode: Mode, counters: Counters | None = None) -> list[StatsSample]:
    found = (counters or Counters()).of(room).samples(instance.id, mode)
    return [one async for one in found]


async def test_one_shot_is_one_reading_without_a_difference(room: Room) -> None:
    instance = await room.started(container())
    (only,) = await samples(room, instance, "one-shot")
    assert only.now is not None and only.now.usage.cpu.total == 1
    assert (only.before, only.before_ns) == (None, 0)
    assert only.now.interfaces == ETH0


async def test_once_has_the_reading_before_it(room: Room, counters: Counters) -> None:
    instance = await room.started(container())
    (only,) = await samples(room, instance, "once", counters)
    assert only.now is not None and only.before is not None
    assert (only.before.total, only.now.usage.cpu.total) == (1, 2)
    assert only.before_ns < only.now.time_ns
    assert set(counters.read) == {room.host.paths.cgroup(instance.id, "")}


async def test_a_stream_lasts_until_the_container_is_removed(room: Room) -> None:
    instance = await room.started(container())
    seen: list[StatsSample] = []
    async for sample in Counters().of(room).samples(instance.id, "stream"):
        seen.append(sample)
        if len(seen) == 3:
            instance.announce_removal(Exit(0))
    assert [one.before.total for one in seen if one.before] == [1, 2, 3]


@pytest.mark.parametrize("mode", ["once", "one-shot"])
async def test_one_that_does_not_run_uses_nothing(room: Room, mode: Mode, counters: Counters) -> None:
    instance = await room.add(container())
    (only,) = await samples(room, instance, mode, counters)
    assert only == StatsSample(instance.record)
    assert counters.read == []


async def test_a_stream_of_one_that_ends_goes_on_without_figures(room: Room) -> None:
    instance = await room.started(container())
    seen: list[bool] = []
    async for sample in Counters().of(room).samples(instance.id, "stream"):
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
