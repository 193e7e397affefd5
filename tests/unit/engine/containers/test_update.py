"""`docker update`: what a container has afterwards, and what does not fit together."""

from typing import Any, cast

import pytest

from husk.engine.containers.update import Updater, merge
from husk.engine.model.container_config import HostConfig, RestartPolicy
from husk.errors import Conflict, DiskFault
from tests.support.drivers import HOST, FakeRuntime
from tests.support.room import Room
from tests.unit.engine.records import container

MIB = 1 << 20


def test_zero_leaves_things_as_they_are():
    current = HostConfig(memory=64 * MIB, memory_swap=128 * MIB, cpu_shares=7, pids_limit=5)
    assert merge(current, HostConfig()) == current


def test_a_container_with_endless_swap_can_be_updated():
    current = HostConfig(memory=64 << 20, memory_swap=-1)
    assert merge(current, HostConfig(cpu_shares=5)).cpu_shares == 5
    assert merge(current, HostConfig(memory_reservation=32 << 20)).memory_reservation == 32 << 20


def test_what_is_given_is_taken():
    current = HostConfig(memory=64 * MIB, memory_swap=128 * MIB, binds=["/a:/b"])
    merged = merge(current, HostConfig(memory=32 * MIB, cpuset_cpus="0", restart_policy=RestartPolicy(name="always")))
    assert (merged.memory, merged.memory_swap, merged.cpuset_cpus) == (32 * MIB, 128 * MIB, "0")
    assert (merged.restart_policy.name, merged.binds) == ("always", ["/a:/b"])
    assert current.memory == 64 * MIB, "the old configuration is not touched"


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_of_processes_can_be_lifted(limit: int):
    assert merge(HostConfig(pids_limit=5), HostConfig(pids_limit=limit)).pids_limit == 0


@pytest.mark.parametrize(
    ("current", "request_", "words"),
    [
        (HostConfig(nano_cpus=1), HostConfig(cpu_period=1000), "CPU Period cannot be updated as NanoCPUs"),
        (HostConfig(nano_cpus=1), HostConfig(cpu_quota=1000), "CPU Quota cannot be updated as NanoCPUs"),
        (HostConfig(cpu_period=1), HostConfig(nano_cpus=1), "Nano CPUs cannot be updated as CPU Period"),
        (HostConfig(cpu_quota=1), HostConfig(nano_cpus=1), "Nano CPUs cannot be updated as CPU Quota"),
        (HostConfig(memory_swap=MIB), HostConfig(memory=2 * MIB), "update the memoryswap at the same time"),
        (HostConfig(), HostConfig(memory=2 * MIB), "update the memoryswap at the same time"),
        (
            HostConfig(auto_remove=True),
            HostConfig(restart_policy=RestartPolicy(name="always")),
            "Restart policy cannot be updated because AutoRemove is enabled",
        ),
    ],
)
def test_conflicts(current: HostConfig, request_: HostConfig, words: str):
    with pytest.raises(Conflict, match=words):
        merge(current, request_)


async def test_limits_that_cannot_be_written_do_not_stay(room: Room, monkeypatch: pytest.MonkeyPatch):
    web = await room.started(container("web", host_config=HostConfig(memory=64 * MIB, memory_swap=-1)))
    applied: list[object] = []

    async def update(runtime: FakeRuntime, container_id: str, resources: dict[str, Any]) -> None:
        applied.append(resources["memory"]["limit"])

    async def full(*_: object, **__: object) -> None:
        raise DiskFault("write state.db: no space left on device")

    monkeypatch.setattr(FakeRuntime, "update", update, raising=False)
    monkeypatch.setattr(room.index, "save", full)
    runtimes = cast(Any, room.host.drivers.runtimes)
    updater = Updater(room.index, room.host.paths, runtimes, HOST, lambda record, action: None)
    with pytest.raises(DiskFault):
        await updater.update("web", HostConfig(memory=32 * MIB, memory_swap=-1))
    assert applied == [32 * MIB, 64 * MIB]
    assert web.record.host_config.memory == 64 * MIB
