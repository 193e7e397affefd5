"""A worker on the loopback, over TLS, with doubles of containers: a manager is a desk that says what it is told to."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import cast
from unittest.mock import AsyncMock, Mock

import pytest

from husk.engine.containers.service import Containers
from husk.engine.model.container import TASK_LABEL
from husk.engine.model.container_config import ContainerConfig, HostConfig
from husk.engine.model.events import Events
from husk.engine.networks.service import Networks
from husk.errors import DiskFault, SystemFault
from husk.storage.secrets.task_files import TaskFiles
from husk.swarm.model import heartbeats
from husk.swarm.model.node import NodeDescription
from husk.swarm.model.placement import NodeFacts
from husk.swarm.model.swarm import Membership
from husk.swarm.node.worker import REMOVED, WorkerRole
from husk.swarm.port.assignment_messages import (
    AssignedTask,
    AssignmentUpdate,
    HeartbeatReply,
    ReportReply,
    Reports,
    decoded,
    encoded,
)
from husk.swarm.port.dispatch import DispatchHandlers
from tests.support.but import but
from tests.support.cluster_port import PortedSwarm
from tests.support.waiting import until_async
from tests.unit.swarm.manager.test_planner import make_service, make_task
from tests.unit.swarm.world import FakeContainers


class Manager:
    """Tells its one worker of one task."""

    def __init__(self, swarm: PortedSwarm) -> None:
        self.swarm = swarm
        self.described = self.beats = 0
        self.left: list[str] = []
        self.states: list[str] = []
        self.task = make_task(1, node_id="w")
        self.task = but(self.task, status__state="assigned")

    async def assignments(self, node: str) -> AsyncGenerator[bytes]:
        yield encoded(AssignmentUpdate(all=True, node=NodeFacts(id=node, hostname="beta", address="192.0.2.9")))
        yield encoded(AssignmentUpdate(managers=[("first", str(self.swarm.endpoint))]))
        yield encoded(AssignmentUpdate(managers=[("first", str(self.swarm.endpoint)), ("second", "192.0.2.7:2377")]))
        yield encoded(AssignmentUpdate(tasks=[AssignedTask(task=self.task, service=make_service(1))]))
        yield encoded(AssignmentUpdate(complete=True))
        await asyncio.Event().wait()

    async def report(self, node: str, body: bytes) -> bytes:
        self.states += [r.status.state if r.status else "gone" for r in decoded(body, Reports).reports]
        return encoded(ReportReply())

    async def heartbeat(self, node: str) -> bytes:
        self.beats += 1
        return encoded(HeartbeatReply(period_ns=20_000_000))

    async def describe(self, node: str, body: bytes) -> bytes:
        self.described += decoded(body, NodeDescription).hostname == "beta"
        return b""

    async def leave(self, node: str) -> None:
        self.left.append(node)


class Host:
    def __init__(self, swarm: PortedSwarm, directory: Path) -> None:
        events = Events()
        self.containers = FakeContainers(events)
        self.noted: list[Membership] = []
        self.networks = Mock()
        self.networks.listing.return_value = []
        self.networks.presence = Mock(here=[], alone=[], ingress=None, know=AsyncMock())
        self.networks.overlays.apply = AsyncMock()
        self.networks.balancing.apply = AsyncMock(return_value=True)
        self.worker = WorkerRole(
            Membership(node_id="w", role="worker", managers=[str(swarm.endpoint)]),
            swarm.identity("w", "worker"),
            lambda identity: None,
            containers=cast(Containers, self.containers),
            images=Mock(),
            networks=cast(Networks, self.networks),
            files=TaskFiles(directory / "secrets"),
            events=events,
            description=NodeDescription(hostname="beta"),
            note=self._note,
        )

    async def _note(self, membership: Membership) -> None:
        self.noted.append(membership)
        if len(self.noted) == 1:
            raise DiskFault("the disk is full")

    async def stranger(self, name: str = "left", task: str = "unknown") -> str:
        config = ContainerConfig(labels={TASK_LABEL: task})
        return (await self.containers.create(name, config, HostConfig())).container.id

    @property
    def running(self) -> int:
        return sum(record.state.running for record in self.containers.records.values())


@pytest.fixture
async def manager() -> AsyncIterator[Manager]:
    swarm = PortedSwarm()
    swarm.roles["w"] = "worker"
    made = Manager(swarm)
    async with swarm.opened() as port:
        DispatchHandlers(made).register(port)
        yield made


async def test_it_runs_what_it_is_told_and_leaves_nothing(manager: Manager, tmp_path: Path) -> None:
    host = Host(manager.swarm, tmp_path)
    assert host.worker.address == "" and host.worker.managers == (manager.swarm.endpoint,)
    stranger = await host.stranger()
    host.worker.start()
    await until_async(lambda: host.running == 1 and "running" in manager.states, "the task runs")
    await until_async(lambda: stranger not in host.containers.records, "what nobody knows of is removed")
    await until_async(lambda: manager.beats > 1, "it lives")
    assert (host.worker.address, host.worker.trouble, manager.described) == ("192.0.2.9", "", 1)
    # Who the managers are is kept for the next daemon.
    assert [place.manager_ids for place in host.noted] == [["first"], ["first", "second"]]
    assert host.noted[-1].known_managers[1] == ("second", "192.0.2.7:2377")
    assert [str(one) for one in host.worker.managers] == host.noted[-1].managers
    await host.worker.leave()
    assert manager.left == ["w"] and not host.containers.records


async def test_a_task_that_is_told_in_a_newer_releases_words_keeps_its_container(
    manager: Manager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = make_task(2, id="newer", node_id="w")
    newer = but(newer, desired_state="hibernating")
    told = manager.assignments

    async def with_newer(node: str) -> AsyncGenerator[bytes]:
        async for body in told(node):
            yield body
            if decoded(body, AssignmentUpdate).all:
                yield encoded(AssignmentUpdate(tasks=[AssignedTask(task=newer)]))

    monkeypatch.setattr(manager, "assignments", with_newer)
    host = Host(manager.swarm, tmp_path)
    stranger, kept = await host.stranger(), await host.stranger("kept", "newer")
    host.worker.start()
    await until_async(lambda: host.running == 1, "the other task runs")
    await until_async(lambda: stranger not in host.containers.records, "what nobody knows of is removed")
    assert kept in host.containers.records
    await host.worker.leave()


async def test_no_heartbeat_follows_a_farewell(
    manager: Manager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeats, "SHORTEST", 1)
    beats = list[int]()

    async def slow(node: str) -> None:
        beats.append(manager.beats)
        await asyncio.sleep(0.1)  # five heartbeats would fit in
        beats.append(manager.beats)

    monkeypatch.setattr(manager, "leave", slow)
    host = Host(manager.swarm, tmp_path)
    host.worker.start()
    await until_async(lambda: manager.beats > 2, "it lives")
    await host.worker.leave()
    assert len(beats) == 2 and beats[0] == beats[1] == manager.beats


async def test_a_daemon_that_ends_leaves_its_tasks(manager: Manager, tmp_path: Path) -> None:
    host = Host(manager.swarm, tmp_path)
    host.worker.start()
    await until_async(lambda: host.running == 1, "the task runs")
    await host.worker.close()
    await host.worker.close()
    assert host.running == 1 and manager.left == []


async def test_a_node_that_was_removed_stops_its_tasks_and_says_so(manager: Manager, tmp_path: Path) -> None:
    host = Host(manager.swarm, tmp_path)
    host.worker.start()
    await until_async(lambda: host.running == 1, "the task runs")
    del manager.swarm.roles["w"]
    await until_async(lambda: host.running == 0 and not host.containers.records, "nothing of it is left")
    assert host.worker.trouble == REMOVED
    await host.worker.leave()


async def test_a_container_that_stays_keeps_it_from_leaving_until_the_next_try(
    manager: Manager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(manager.swarm, tmp_path)
    first, second = await host.stranger("a"), await host.stranger("b")
    remove, failures = host.containers.remove, iter([SystemFault("busy")])

    async def failing(reference: str, *how: bool) -> None:
        if reference == first and (failure := next(failures, None)):
            raise failure
        await remove(reference, *how)

    monkeypatch.setattr(host.containers, "remove", failing)
    with pytest.raises(SystemFault, match="busy"):
        await host.worker.leave()
    assert list(host.containers.records) == [first] and second not in host.containers.records
    await host.worker.leave()
    assert not host.containers.records


async def test_it_can_leave_without_its_managers(tmp_path: Path) -> None:
    swarm = PortedSwarm()
    async with swarm.opened():
        host = Host(swarm, tmp_path)
    await host.stranger()
    host.worker.start()
    await until_async(lambda: bool(host.worker.trouble), "nobody is there")
    await host.worker.leave()
    assert not host.containers.records
