"""A manager tells a node its own tasks with what they need, and takes states of its own tasks only."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import msgspec
import pytest

from husk.errors import InvalidParameter, Unavailable
from husk.registry.auth import Credentials
from husk.storage.state.store import StateStore
from husk.swarm.manager.dispatcher.dispatcher import AT_ONCE, MOST_REPORTS, Dispatcher
from husk.swarm.model.node import ManagerStatus
from husk.swarm.model.services import (
    ContainerSpec,
    FileTarget,
    ObjectSpec,
    SecretReference,
    Service,
    Task,
    TaskSpec,
    TaskStatus,
)
from husk.swarm.network.views import NetworkShare, View
from husk.swarm.node.credentials import PullCredentials
from husk.swarm.node.delivery import SealedValues
from husk.swarm.port.assignment_messages import AssignmentUpdate, Report, encoded
from husk.swarm.state.records import OUT_OF_SEQUENCE
from tests.support.but import but
from tests.support.waiting import soon
from tests.unit.swarm.manager.test_planner import make_task
from tests.unit.swarm.swarm_room import SwarmRoom, spec


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
