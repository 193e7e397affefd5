"""A manager tells a node its own tasks with what they need, and takes states of its own tasks only."""

import asyncio
import base64
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import msgspec
import pytest

from husk.engine.containers.service import Containers
from husk.engine.model.container import TASK_LABEL
from husk.engine.model.container_config import ContainerConfig, HostConfig
from husk.engine.model.events import Events
from husk.errors import Forbidden, InvalidParameter, Unavailable
from husk.registry.auth import Credentials
from husk.storage.state.store import StateStore
from husk.swarm.manager.dispatcher import dispatcher
from husk.swarm.manager.dispatcher.dispatcher import AT_ONCE, MOST_REPORTS, Dispatcher, DispatcherServer
from husk.swarm.model.heartbeats import PERIOD, Heartbeats
from husk.swarm.model.node import ManagerStatus, Node, NodeDescription
from husk.swarm.model.placement import NodeFacts
from husk.swarm.model.services import (
    SECOND,
    ConfigReference,
    ContainerSpec,
    FileTarget,
    ObjectSpec,
    PortConfig,
    SecretReference,
    Service,
    ServiceSpec,
    Task,
    TaskSpec,
    TaskState,
    TaskStatus,
    VirtualIP,
)
from husk.swarm.network.views import NetworkShare, View
from husk.swarm.node.agent import Agent
from husk.swarm.node.assignments import PullCredentials
from husk.swarm.node.delivery import SealedValues, Value
from husk.swarm.node.dispatch_client import HeartbeatSender, ManagerChannel
from husk.swarm.node.remote_assignments import RemoteAssignments
from husk.swarm.node.runner import TaskRunner
from husk.swarm.port.assignment_messages import AssignmentUpdate, HeartbeatReply, Report, encoded
from husk.swarm.port.dispatch import DispatchCalls, DispatchHandlers
from husk.swarm.port.managers import Managers
from husk.swarm.state.records import OUT_OF_SEQUENCE
from husk.text.endpoints import HostPort
from tests.support.but import but
from tests.support.clock import FakeClock
from tests.support.cluster_port import PortedSwarm
from tests.support.free_ports import free_port
from tests.support.waiting import soon
from tests.unit.swarm.manager.test_planner import START, make_service, make_task
from tests.unit.swarm.swarm_room import SwarmRoom, spec
from tests.unit.swarm.world import GIB, FakeContainers, World


class Listener:
    """A record of what one node has heard."""

    def __init__(self) -> None:
        self.told: list[AssignmentUpdate] = []

    async def until(self, condition: object) -> None:
        async with asyncio.timeout(10):
            while not condition():  # type: ignore[operator]
                await asyncio.sleep(0)

    @property
    def complete(self) -> bool:
        return any(told.complete for told in self.told)

    @property
    def tasks(self) -> set[str]:
        return {given.task.id for told in self.told for given in told.tasks}

    @property
    def words(self) -> bytes:
        """All of it, as it goes over the wire."""
        return b"".join(encoded(told) for told in self.told)


class Office:
    def __init__(self, room: SwarmRoom) -> None:
        self.room, self.store = room, room.store
        self.heard: list[str] = []
        self.locked = False
        self.credentials = PullCredentials(room.sealer)
        self.dispatcher = Dispatcher(
            store=room.store,
            values=SealedValues(room.store, room.sealer),
            credentials=self.credentials,
            locked=lambda: self.locked,
            changed=lambda task: self.heard.append(task.id),
        )

    async def service(self, name: str, word: bytes) -> tuple[Service, TaskSpec]:
        """A service with a secret and credentials, both of this word."""
        data = base64.b64encode(word).decode()
        secret = await self.room.services.secrets.create(ObjectSpec(name=name, data=data))
        reference = SecretReference(secret_id=secret.id, secret_name=name, file=FileTarget(name=name))
        template = TaskSpec(container_spec=ContainerSpec(image="busybox", secrets=[reference]))
        credentials = Credentials("user", f"password-{word.decode()}")
        return await self.room.services.create(spec(name, task_template=template), credentials), template

    async def task(self, service: Service, template: TaskSpec, node_id: str, state: str = "assigned") -> Task:
        task = make_task(1, state, node_id=node_id, spec=template, service_id=service.id, version=0)  # type: ignore[arg-type]
        await self.store.save(task)
        return self.store.tasks[task.id]

    @asynccontextmanager
    async def listening(self, node_id: str) -> AsyncIterator[Listener]:
        listener = Listener()

        async def listen() -> None:
            async with aclosing(self.dispatcher.assignments(node_id)) as news:
                async for told in news:
                    # As it is now: records change in place.
                    listener.told.append(msgspec.json.decode(encoded(told), type=AssignmentUpdate))

        task = asyncio.get_running_loop().create_task(listen())
        try:
            yield listener
        finally:
            task.cancel()
            await asyncio.wait([task])


@pytest.fixture
def ca_server(room: SwarmRoom) -> Office:
    return Office(room)


async def test_a_node_hears_of_its_own_tasks_with_their_secrets_and_credentials_and_of_nothing_else(
    ca_server: Office,
) -> None:
    mine, others = await ca_server.service("mine", b"hunter2"), await ca_server.service("others", b"tiger3")
    task, foreign = await ca_server.task(*mine, "a"), await ca_server.task(*others, "b")
    await ca_server.task(*others, "a", "pending")
    ended = await ca_server.task(*others, "a", "failed")
    async with ca_server.listening("a") as node:
        await node.until(lambda: node.complete)
        assert node.told[0].all and node.tasks == {task.id, ended.id}
        [value] = [value for told in node.told for value in told.values]
        assert value.data == b"hunter2"
        [given] = [given for told in node.told for given in told.tasks if given.task.id == task.id]
        assert given.credentials == Credentials("user", "password-hunter2")
        assert given.service is not None and given.service.spec.name == "mine"
        later = await ca_server.task(*others, "b")
        await ca_server.store.settle(foreign)
        own = await ca_server.task(*mine, "a")
        await node.until(lambda: own.id in node.tasks)
        assert not {foreign.id, later.id} & node.tasks
        secrets = [base64.b64encode(b"tiger3"), b"tiger3", foreign.id.encode(), later.id.encode()]
        assert not [word for word in secrets if word in node.words]


async def test_a_value_goes_when_no_task_needs_it_any_more(ca_server: Office) -> None:
    task = await ca_server.task(*await ca_server.service("mine", b"hunter2"), "a", "running")
    async with ca_server.listening("a") as node:
        await node.until(lambda: node.complete)
        task = but(task, desired_state="shutdown")
        await ca_server.store.settle(task)
        await node.until(lambda: node.told[-1].dropped)
        assert node.told[-2].tasks[0].task.desired_state == "shutdown" and node.told[-2].tasks[0].credentials is None
        await ca_server.store.delete(task)
        await node.until(lambda: node.told[-1].gone == [task.id])


async def test_what_a_node_reported_itself_is_not_told_back(ca_server: Office) -> None:
    task = await ca_server.task(*await ca_server.service("mine", b"hunter2"), "a")
    async with ca_server.listening("a") as node:
        await node.until(lambda: node.complete)
        number = len(node.told)
        await ca_server.dispatcher.report("a", [_report(task, "running")])
        other = await ca_server.task(*await ca_server.service("more", b"x"), "a")
        await node.until(lambda: other.id in node.tasks)
        assert not [given for told in node.told[number:] for given in told.tasks if given.task.id == task.id]


async def test_many_tasks_come_in_several_messages(ca_server: Office) -> None:
    service = await ca_server.service("mine", b"hunter2")
    tasks = [await ca_server.task(*service, "a") for _ in range(AT_ONCE + 1)]
    async with ca_server.listening("a") as node:
        await node.until(lambda: node.complete)
        assert node.tasks == {task.id for task in tasks}
        assert max(len(told.tasks) for told in node.told) == AT_ONCE
        assert len([value for told in node.told for value in told.values]) == 1, "a value comes once"


async def test_no_message_is_larger_than_the_port_takes(ca_server: Office) -> None:
    service, template = await ca_server.service("mine", b"hunter2")
    large = but(template, container_spec__env=["X=" + "x" * 200_000])
    tasks = [await ca_server.task(service, large, "a") for _ in range(30)]
    async with ca_server.listening("a") as node:
        await node.until(lambda: node.complete)
        assert node.tasks == {task.id for task in tasks}
        assert max(len(encoded(told)) for told in node.told) < 1 << 20


def _report(task: Task, state: str) -> Report:
    return Report(task_id=task.id, status=TaskStatus(timestamp="", state=state))  # type: ignore[arg-type]


async def test_states_are_taken_from_the_node_that_has_the_task(ca_server: Office) -> None:
    task = await ca_server.task(*await ca_server.service("mine", b"hunter2"), "a")
    heard = await ca_server.dispatcher.report("b", [_report(task, "running"), Report(task_id=task.id)])
    assert (
        heard.refused == [task.id, task.id]
        and ca_server.store.tasks[task.id].status.state == "assigned"
        and not ca_server.heard
    )
    assert (await ca_server.dispatcher.report("a", [_report(task, "running")])).refused == []
    assert ca_server.store.tasks[task.id].status.state == "running" and ca_server.heard == [task.id]
    assert (await ca_server.dispatcher.report("a", [_report(task, "preparing")])).refused == [task.id]
    assert (await ca_server.dispatcher.report("a", [Report(task_id=task.id)])).refused == [task.id], "it is to run"
    ca_server.store.learn(but(ca_server.store.tasks[task.id], desired_state="remove"))
    for _ in range(2):
        assert (await ca_server.dispatcher.report("a", [Report(task_id=task.id)])).refused == []
    assert task.id not in ca_server.store.tasks


async def test_a_report_that_cannot_be_written_stops_no_other(
    ca_server: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would come again with each of the node's reports, for ever."""
    service = await ca_server.service("mine", b"hunter2")
    stuck, other = await ca_server.task(*service, "a"), await ca_server.task(*service, "a")
    amend, told = ca_server.store.amend, "etcd cannot do that: request is too large"

    async def refused(task: Task, *arguments: Any) -> bool:
        if task.id == stuck.id:
            raise InvalidParameter(told)
        return await amend(task, *arguments)

    monkeypatch.setattr(ca_server.store, "amend", refused)
    reports = [_report(stuck, "running"), _report(other, "running")]
    assert (await ca_server.dispatcher.report("a", reports)).refused == [stuck.id]
    assert ca_server.store.tasks[other.id].status.state == "running"
    told = OUT_OF_SEQUENCE
    with pytest.raises(InvalidParameter, match="out of sequence"):
        await ca_server.dispatcher.report("a", reports)


async def test_a_node_cannot_fill_the_log_or_the_day(ca_server: Office, caplog: pytest.LogCaptureFixture) -> None:
    many = [
        Report(task_id=f"x{number}", status=TaskStatus(timestamp="", state="running")) for number in range(MOST_REPORTS)
    ]
    assert len((await ca_server.dispatcher.report("a", many)).refused) == MOST_REPORTS
    assert len(caplog.records) == 1 and "1000 tasks" in caplog.text
    with pytest.raises(InvalidParameter, match="more than 1000 reports"):
        await ca_server.dispatcher.report("a", [*many, many[0]])


async def test_while_the_swarm_is_locked_tasks_with_secrets_wait(ca_server: Office) -> None:
    ca_server.locked = True
    task = await ca_server.task(*await ca_server.service("mine", b"hunter2"), "a")
    async with ca_server.listening("a") as node:
        await node.until(lambda: node.complete)
        [given] = [given for told in node.told for given in told.tasks]
        assert "the swarm is locked" in given.obstacle and b"aHVudGVyMg" not in node.words
        ca_server.locked = False
        ca_server.dispatcher.wake()
        await node.until(lambda: any(told.values for told in node.told))
        await node.until(lambda: node.told[-1].tasks)
        assert (node.told[-1].tasks[0].task.id, node.told[-1].tasks[0].obstacle) == (task.id, "")


async def test_a_task_that_goes_while_all_is_told_again_is_told_to_be_gone(ca_server: Office) -> None:
    service = await ca_server.service("mine", b"hunter2")
    task, other = await ca_server.task(*service, "a"), await ca_server.task(*service, "a")
    async with ca_server.listening("a") as node:
        await node.until(lambda: node.complete)
        number = len(node.told)
        ca_server.store.index.changed.subscribe(lambda _: ca_server.dispatcher.wake())
        await ca_server.store.delete(task)
        await node.until(lambda: any(told.gone == [task.id] for told in node.told))
        assert [given.task.id for told in node.told[number:] for given in told.tasks] == [other.id]


async def test_a_secret_that_is_gone_keeps_no_other_from_being_told(ca_server: Office, tmp_path: Path) -> None:
    task = await ca_server.task(*await ca_server.service("mine", b"hunter2"), "a")
    await ca_server.store.delete(*ca_server.store.secrets.values())
    async with ca_server.listening("a") as node:
        await node.until(lambda: node.complete)
        assert node.tasks == {task.id} and not [told for told in node.told if told.values]


async def test_networks_are_told_before_tasks_then_what_is_new_of_them(tmp_path: Path, state: StateStore) -> None:
    known: dict[tuple[str, str], msgspec.Struct] = {("node", id): TaskStatus(timestamp=id, state="new") for id in "abc"}
    generation, made = 0, 0

    def share(node: str) -> NetworkShare:
        nonlocal made
        made += 1
        return NetworkShare(View(dict(known)), {}, 4790)

    room = SwarmRoom(tmp_path, state)
    await room.init()
    ca_server = Dispatcher(
        store=room.store,
        values=SealedValues(room.store, room.sealer),
        credentials=PullCredentials(room.sealer),
        locked=lambda: False,
        changed=lambda task: None,
        networks=share,
        generation=lambda: generation,
        records_at_once=2,
    )
    async with aclosing(ca_server.assignments("w")) as told:
        opening = await anext(told)
        assert opening.all and opening.managers == [(room.cluster.node_id, "192.0.2.1:2377")]
        first, second = (await anext(told)).networks, (await anext(told)).networks
        assert first is not None and second is not None and (first.all, first.more, second.more) == (True, True, False)
        assert [one.key for one in (*first.records, *second.records)] == ["a", "b", "c"]
        assert second.data_path_port == 4790 and (await anext(told)).complete
        del known["node", "a"]
        known["node", "b"] = TaskStatus(timestamp="b", state="running")
        generation += 1
        ca_server.look()
        news = (await anext(told)).networks
        assert news is not None and not news.all and news.gone == [("node", "a")]
        assert [one.key for one in news.records] == ["b"]
        room.store.learn(but(room.cluster.node, manager=ManagerStatus(addr="192.0.2.8:2377")))
        ca_server.look()
        assert (await anext(told)).managers == [(room.cluster.node_id, "192.0.2.8:2377")]
        # What is as it was is not told again, and not even looked at where nothing can have changed.
        ca_server.look()
        generation += 1
        ca_server.look()
        coming = soon(anext(told))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not coming.done() and made == 3
        coming.cancel()
        await asyncio.wait([coming])


async def test_a_manager_that_has_not_heard_of_all_tasks_tells_a_node_nothing(
    ca_server: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ca_server.store, "catch_up", AsyncMock(side_effect=Unavailable("not heard yet")))
    with pytest.raises(Unavailable):
        await anext(ca_server.dispatcher.assignments("a"))


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


def with_files(task: Task, secret: str, config: str) -> Task:
    target = FileTarget(name="x")
    container = ContainerSpec(
        secrets=[SecretReference(secret_id=secret, secret_name="x", file=target)],
        configs=[ConfigReference(config_id=config, config_name="x", file=target)],
    )
    return msgspec.structs.replace(task, spec=TaskSpec(container_spec=container))


def test_a_node_is_told_of_its_own_tasks_and_what_they_need():
    mine = with_files(make_task(1, "assigned", node_id="a"), "s1", "c1")
    others = with_files(make_task(2, node_id="b", service_id="other"), "s2", "c2")
    waits = with_files(make_task(3, "pending", node_id="a", service_id="other"), "s3", "c3")
    ended = with_files(make_task(4, "failed", node_id="a"), "s4", "c4")
    unwanted = with_files(make_task(5, node_id="a", desired_state="shutdown"), "s5", "c5")
    services = {"s": make_service(), "other": make_service(id="other")}
    found = dispatcher.share_of("a", [mine, others, waits, ended, unwanted], services)
    assert set(found.tasks) == {mine.id, ended.id, unwanted.id}
    assert set(found.services) == {"s"}
    assert found.values == {("secret", "s1"), ("config", "c1")}
    assert dispatcher.share_of("", [make_task(1, node_id="")], services) == dispatcher.Share()


def test_of_a_service_a_node_is_told_what_a_container_has_of_it():
    spec = ServiceSpec(
        name="web", labels={"a": "b"}, task_template=TaskSpec(container_spec=ContainerSpec(env=["X=word"]))
    )
    service = make_service(
        credentials=b"sealed",
        previous_spec=spec,
        ports=[PortConfig(target_port=80)],
        virtual_ips=[VirtualIP(addr="10.0.0.2/24")],
    )
    service = but(service, spec=spec)
    found = dispatcher.needed_of(service)
    assert (found.spec.name, found.spec.labels, found.ports, found.virtual_ips) == (
        "web", {"a": "b"}, service.ports, service.virtual_ips,
    )  # fmt: skip
    told = msgspec.json.encode(found)
    assert b"word" not in told and not found.credentials and found.previous_spec is None


def status(state: TaskState, **fields: object) -> TaskStatus:
    return TaskStatus(timestamp="theirs", state=state, since_ns=1, started_ns=2, **fields)  # type: ignore[arg-type]


def test_times_are_the_managers_own():
    task = make_task(1, "starting", node_id="a")
    task = but(task, status__started_ns=0)
    written = dispatcher.checked("a", task, status("running", container_id="ab" * 32, pid=3), FakeClock(START + 5))
    assert (written.state, written.container_id, written.pid) == ("running", "ab" * 32, 3)
    assert (written.since_ns, written.started_ns) == (START + 5, START + 5) and written.timestamp != "theirs"
    task = but(task, status=written)
    again = dispatcher.checked("a", task, status("running", err="x" * 9999), FakeClock(START + 9))
    assert (again.since_ns, again.started_ns, len(again.err)) == (START + 5, START + 5, 4096)


@pytest.mark.parametrize(
    ("task", "reported"),
    [
        (None, "running"),
        (make_task(1, "starting", node_id="b"), "running"),
        (make_task(1, "pending", node_id="a"), "running"),
        (make_task(1, "running", node_id="a"), "starting"),
        (make_task(1, "failed", node_id="a"), "running"),
        (make_task(1, "failed", node_id="a"), "complete"),
        (make_task(1, "running", node_id="a"), "pending"),
        (make_task(1, "running", node_id="a"), "orphaned"),
        (make_task(1, "running", node_id="a"), "remove"),
        (make_task(1, "orphaned", node_id="a"), "running"),
    ],
)
def test_what_a_node_may_not_say(task: Task | None, reported: TaskState):
    with pytest.raises(Forbidden):
        dispatcher.checked("a", task, status(reported), FakeClock(START))


@pytest.mark.parametrize("wrong", ["../etc", "postgres", "ab" * 16, "AB" * 32, "ab" * 33])
def test_what_is_no_id_of_a_container(wrong: str):
    with pytest.raises(InvalidParameter):
        dispatcher.checked("a", make_task(1, node_id="a"), status("running", container_id=wrong), FakeClock(START))


@pytest.mark.parametrize("said", [{"exit_code": 10**30}, {"exit_code": -(1 << 31) - 1}, {"pid": 1 << 31}])
def test_what_is_no_number_that_clients_can_read(said: dict[str, int]):
    with pytest.raises(InvalidParameter, match="no process has such a number"):
        dispatcher.checked("a", make_task(1, node_id="a"), status("failed", **said), FakeClock(START))
    dispatcher.checked("a", make_task(1, node_id="a"), status("failed", exit_code=137, pid=1 << 22), FakeClock(START))


def test_only_what_is_to_be_removed_can_be_gone():
    task = make_task(1, "shutdown", node_id="a", desired_state="remove")
    assert dispatcher.check_gone("a", task) is task
    for node_id, other in (("b", task), ("a", make_task(1, node_id="a")), ("a", None)):
        with pytest.raises(Forbidden):
            dispatcher.check_gone(node_id, other)
