"""A manager and a worker that know each other only by the cluster port: TLS on the loopback, containers are doubles."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import cast
from unittest.mock import AsyncMock, Mock

import pytest

from husk.engine.containers.service import Containers
from husk.engine.model.container import TASK_LABEL
from husk.engine.model.container_config import ContainerConfig, HostConfig
from husk.engine.model.events import Events
from husk.errors import Forbidden, Unavailable
from husk.storage.state.store import StateStore
from husk.swarm.manager.dispatcher.dispatcher import Dispatcher
from husk.swarm.manager.dispatcher.server import DispatcherServer
from husk.swarm.model.heartbeats import PERIOD, Heartbeats
from husk.swarm.model.node import Node, NodeDescription
from husk.swarm.model.placement import NodeFacts
from husk.swarm.model.services import SECOND, TaskStatus
from husk.swarm.node.agent import Agent
from husk.swarm.node.credentials import PullCredentials
from husk.swarm.node.delivery import Value
from husk.swarm.node.dispatch_client import HeartbeatSender, ManagerChannel
from husk.swarm.node.remote_assignments import RemoteAssignments
from husk.swarm.node.runner import TaskRunner
from husk.swarm.port.assignment_messages import HeartbeatReply, Report, encoded
from husk.swarm.port.dispatch import DispatchCalls, DispatchHandlers
from husk.swarm.port.managers import Managers
from husk.text.endpoints import HostPort
from tests.support.but import but
from tests.support.cluster_port import PortedSwarm
from tests.support.free_ports import free_port
from tests.unit.swarm.world import GIB, FakeContainers, World


class Worker:
    """A node in a process of its own, as far as the manager can tell."""

    def __init__(self, swarm: PortedSwarm, node_id: str) -> None:
        self.managers = Managers([swarm.endpoint], swarm.identity(node_id, "worker"))
        calls = DispatchCalls(self.managers)
        self.calls, self.removed = calls, 0
        self.pulse = HeartbeatSender(calls, NodeDescription(hostname=f"host of {node_id}"), self._removed)
        self.events = Events()
        self.containers = FakeContainers(self.events)
        self.channel = ManagerChannel(calls)
        self.assignments = RemoteAssignments(self.channel, lambda *ids: self.agent.wake(*ids), self._told_all)
        self.runner = TaskRunner(
            assignments=self.assignments,
            containers=cast(Containers, self.containers),
            images=Mock(),
            deliveries=AsyncMock(deliver=AsyncMock(return_value=[])),
        )
        self.agent = Agent(
            assignments=self.assignments,
            containers=cast(Containers, self.containers),
            runner=self.runner,
            reachable=AsyncMock(return_value=True),
            events=self.events,
        )

    def _removed(self) -> None:
        self.removed += 1

    def _told_all(self) -> None:
        self.runner.remove_strangers()

    def start(self) -> None:
        self.assignments.start()
        self.agent.start()
        self.pulse.start()

    async def close(self) -> None:
        for part in (self.pulse, self.assignments, self.agent, self.runner, self.managers):
            await part.close()

    @property
    def running(self) -> int:
        return sum(record.state.running for record in self.containers.records.values())


class Ported:
    """A manager without containers of its own, and two workers."""

    def __init__(self, world: World, swarm: PortedSwarm) -> None:
        self.world, self.swarm = world, swarm
        self.beats = Heartbeats()
        self.dispatcher = Dispatcher(
            store=world.store,
            values=Mock(value=Mock(return_value=Value(b"hunter2"))),
            credentials=PullCredentials(Mock()),
            locked=lambda: False,
            changed=world.reconciler.noticed,
        )
        self.workers: dict[str, Worker] = {}

    def beat(self, node: str) -> int:
        self.beats.beat(node, 0)
        return PERIOD

    def arrive(self, node: str) -> None:
        self.beat(node)

    async def describe(self, node: str, description: NodeDescription) -> None:
        self.world.store.nodes[node] = but(self.world.store.nodes[node], description=description)

    async def leave(self, node: str) -> None:
        self.beats.forget(node)

    async def join(self, node_id: str) -> Worker:
        self.swarm.roles[node_id] = "worker"
        self.world.store.nodes[node_id] = Node(id=node_id, version=1, created_at="", updated_at="")
        self.world.nodes[node_id] = NodeFacts(id=node_id, hostname=node_id, memory=GIB)
        worker = self.workers[node_id] = Worker(self.swarm, node_id)
        return worker

    def homes(self) -> Counter[str]:
        return Counter(task.node_id for task in self.world.running())


@pytest.fixture
async def ported(state: StateStore) -> AsyncIterator[Ported]:
    world, swarm = World(state), PortedSwarm()
    made = Ported(world, swarm)
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(swarm.opened())
        DispatchHandlers(DispatcherServer(made.dispatcher, made)).register(port)
        world.start()
        stack.push_async_callback(world.close)
        for node_id in ("a", "b"):
            worker = await made.join(node_id)
            worker.start()
            stack.push_async_callback(worker.close)
        yield made


async def test_workers_run_what_they_are_given_and_a_lost_ones_tasks_run_elsewhere(ported: Ported) -> None:
    world, workers = ported.world, ported.workers
    world.declare(4)
    await world.until(lambda: ported.homes() == {"a": 2, "b": 2}, "each runs two")
    assert [worker.running for worker in workers.values()] == [2, 2]
    assert set(ported.beats.known) == {"a", "b"}
    assert world.store.nodes["a"].description.hostname == "host of a"
    await workers["a"].managers.close()
    await workers["a"].assignments.close()
    await workers["a"].pulse.close()
    world.change("a", state="down", lost_ns=1)
    await world.until(lambda: ported.homes() == {"b": 4}, "the other runs all")
    assert workers["a"].running == 2, "nobody can tell it"
    world.change("a", state="ready")
    workers["a"].assignments.start()
    await world.until(lambda: workers["a"].running == 0, "its old tasks end first thing")
    assert ported.homes() == {"b": 4}


async def test_what_is_removed_is_removed_on_its_node(ported: Ported) -> None:
    world = ported.world
    world.declare(2)
    await world.until(lambda: len(world.running()) == 2, "both run")
    del world.store.services["web"]
    world.reconciler.wake("web")
    await world.until(lambda: not world.store.tasks, "no task is left")
    await world.until(lambda: not any(w.containers.records for w in ported.workers.values()), "nor a container")


async def test_a_worker_says_nothing_of_tasks_that_are_anothers(ported: Ported) -> None:
    world = ported.world
    world.declare(2)
    await world.until(lambda: len(world.running()) == 2, "both run")
    [foreign] = [task for task in world.running() if task.node_id == "b"]
    failed = TaskStatus(timestamp="", state="failed")
    heard = await ported.workers["a"].channel.report(
        [Report(task_id=foreign.id, status=failed), Report(task_id="x" * 25)]
    )
    assert heard.refused == [foreign.id] and foreign.status.state == "running"


async def test_a_report_in_a_newer_releases_words_costs_no_other(ported: Ported) -> None:
    world = ported.world
    world.declare(4)
    await world.until(lambda: ported.homes() == {"a": 2, "b": 2}, "each runs two")
    one, two = (task for task in world.running() if task.node_id == "a")
    said = [
        Report(task_id=one.id, status=TaskStatus(timestamp="", state="hibernating")),  # type: ignore[arg-type]
        Report(task_id=two.id, status=TaskStatus(timestamp="", state="failed")),
    ]
    assert (await ported.workers["a"].channel.report(said)).refused == [one.id]
    assert [world.store.tasks[task.id].status.state for task in (one, two)] == ["running", "failed"]


async def test_a_node_that_was_removed_hears_and_says_nothing_more(ported: Ported) -> None:
    worker = ported.workers["a"]
    assert await worker.pulse.beat() == PERIOD
    del ported.swarm.roles["a"]
    for _ in range(2):
        assert await worker.pulse.beat() == PERIOD
    assert worker.removed == 1 and worker.pulse.removed and "does not belong to the swarm" in worker.pulse.trouble
    with pytest.raises(Forbidden):
        await worker.channel.report([])
    with pytest.raises(Forbidden):
        async for _ in worker.channel.assignments():
            raise AssertionError("it was told something")


async def test_a_worker_that_no_manager_hears_tries_again_soon(ported: Ported) -> None:
    worker = ported.workers["a"]
    await worker.pulse.close()
    await worker.calls.leave(5.0)
    assert set(ported.beats.known) <= {"b"}
    worker.managers.know([HostPort("127.0.0.1", free_port())])
    await worker.managers.close()
    assert [await worker.pulse.beat() for _ in range(4)] == [SECOND, 2 * SECOND, 4 * SECOND, PERIOD]
    assert worker.pulse.trouble and not worker.pulse.removed and not worker.removed


async def test_a_session_ends_with_its_node(ported: Ported) -> None:
    await ported.world.until(lambda: len(ported.dispatcher._sessions) == 2, "both listen")
    await ported.workers["a"].assignments.close()
    await ported.world.until(lambda: set(ported.dispatcher._sessions) == {"b"}, "one has gone")


async def test_a_worker_that_starts_again_keeps_what_is_its_own_and_removes_the_rest(ported: Ported) -> None:
    world = ported.world
    world.declare(2)
    await world.until(lambda: len(world.running()) == 2, "both run")
    old = ported.workers["a"]
    await old.close()
    again = await ported.join("a")
    again.containers.records = old.containers.records
    [kept] = old.containers.records
    stranger = await again.containers.create("left", ContainerConfig(labels={TASK_LABEL: "unknown"}), HostConfig())
    plain = await again.containers.create("plain", ContainerConfig(), HostConfig())
    again.start()
    try:
        await world.until(lambda: again.containers.removed, "what nobody knows is removed")
        assert again.containers.removed == [stranger.container.id]
        assert set(again.containers.records) == {kept, plain.container.id}
        assert len(world.tasks()) == 2, "and what is fine is not touched"
    finally:
        await again.close()


async def test_a_manager_that_can_write_nothing_down_sends_nodes_to_others() -> None:
    away, roll = "the majority is lost", Mock()
    server = DispatcherServer(Mock(), roll, lambda: away)
    with pytest.raises(Unavailable, match="cut off from the swarm: the majority is lost"):
        await server.heartbeat("a")
    with pytest.raises(Unavailable, match="the majority is lost"):
        await anext(server.assignments("a"))
    roll.beat.assert_not_called()
    roll.arrive.assert_not_called()
    away, roll.beat.return_value = "", PERIOD
    assert await server.heartbeat("a") == encoded(HeartbeatReply(period_ns=PERIOD))
