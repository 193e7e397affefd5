"""Services and tasks over HTTP, and the logs of several tasks in one stream."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from msgspec.structs import replace

from husk.api.streams.framing import MULTIPLEXED_STREAM, RAW_STREAM
from tests.support.but import but
from tests.unit.api.fake_engine import FakeEngine
from tests.unit.api.loops import until
from tests.unit.api.swarm import swarm_behind
from tests.unit.swarm.swarm_room import SwarmRoom, task

WEB: dict[str, Any] = {
    "Name": "web", "TaskTemplate": {"ContainerSpec": {"Image": "busybox"}}, "Mode": {"Replicated": {"Replicas": 2}},
}  # fmt: skip


@pytest.fixture
async def room(engine: FakeEngine, tmp_path: Path) -> AsyncIterator[SwarmRoom]:
    async with swarm_behind(engine, tmp_path) as made:
        await made.init()
        yield made


async def create(client: ClientSession, **changes: Any) -> str:
    response = await client.post("/services/create", json=WEB | changes)
    assert response.status == 201, await response.text()
    return str((await response.json())["ID"])


async def test_a_service_from_its_making_to_its_end(client: ClientSession, room: SwarmRoom) -> None:
    service = await create(client)
    shown = await (await client.get(f"/services/{service}?insertDefaults=true")).json()
    assert shown["Spec"]["TaskTemplate"]["RestartPolicy"]["Condition"] == "any"
    listed = await (await client.get("/services?status=true")).json()
    assert listed[0]["ServiceStatus"] == {"RunningTasks": 0, "DesiredTasks": 2, "CompletedTasks": 0}
    assert "ServiceStatus" not in (await (await client.get("/services")).json())[0]
    version = shown["Version"]["Index"]
    updated = await client.post(f"/services/web/update?version={version}", json=WEB | {"Labels": {"a": "1"}})
    assert (updated.status, await updated.json()) == (200, {"Warnings": None})
    assert (await client.delete("/services/web")).status == 200
    assert (await client.get("/services/web")).status == 404


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/services/web/update?version=", 400),
        ("/services/web/update?version=x", 400),
        ("/services/web/update?version=1", 400),
        ("/services/web/update?version=1&rollback=next", 400),
        ("/services/none/update?version=1", 404),
        ("/services/create", 409),
    ],
)
async def test_what_is_wrong_has_a_status(client: ClientSession, room: SwarmRoom, path: str, status: int) -> None:
    await create(client)
    response = await client.post(path, json=WEB)
    assert response.status == status and (await response.json())["message"]
    assert len(room.store.services) == 1


async def test_without_a_swarm_all_of_it_is_unavailable(
    client: ClientSession, engine: FakeEngine, tmp_path: Path
) -> None:
    async with swarm_behind(engine, tmp_path):
        for path in ("/services", "/services/x", "/tasks", "/tasks/x", "/services/x/logs?stdout=1"):
            assert (await client.get(path)).status == 503, path


async def test_tasks_show_where_they_are(client: ClientSession, room: SwarmRoom) -> None:
    service = room.store.services[await create(client)]
    room.networks.add("lan")
    running = await room.run(service, lan="10.1.0.2")
    await room.store.save(task(service, slot=2, state="pending"))
    first, second = await (await client.get("/tasks")).json()
    assert first["NetworksAttachments"][0]["Addresses"] == ["10.1.0.2/24"]
    assert first["NodeID"] == room.cluster.node_id
    assert "NetworksAttachments" not in second and second["NodeID"] == ""
    shown = await (await client.get(f"/tasks/{running.id}")).json()
    assert shown["Status"]["ContainerStatus"]["ContainerID"] == running.status.container_id


class Logs:
    """The logs of tasks, each a queue of pieces that the test fills; `closed` are those that were let go of."""

    def __init__(self, room: SwarmRoom) -> None:
        self.queues: dict[str, asyncio.Queue[bytes | None]] = {}
        self.closed: set[str] = set()
        room.containers.logs = self.logs  # type: ignore[method-assign,assignment]

    def of(self, container: str) -> "asyncio.Queue[bytes | None]":
        return self.queues.setdefault(container, asyncio.Queue())

    async def logs(self, reference: str, query: object, form: object) -> AsyncIterator[bytes]:
        try:
            while (piece := await self.of(reference).get()) is not None:
                yield piece
        finally:
            self.closed.add(reference)


async def test_the_logs_of_all_tasks_come_as_they_are_written(client: ClientSession, room: SwarmRoom) -> None:
    service, logs = room.store.services[await create(client)], Logs(room)
    one, two = [(await room.run(service, slot)).status.container_id for slot in (1, 2)]
    for piece, of in ((b"a\n", one), (b"b\n", two), (b"", one), (None, one), (None, two)):
        logs.of(of).put_nowait(piece)
    response = await client.get("/services/web/logs?stdout=1")
    assert response.content_type == MULTIPLEXED_STREAM
    assert sorted((await response.read()).split()) == [b"a", b"b"]
    assert logs.closed == {one, two}
    old = await client.get("/v1.41/tasks/task-web-1/logs?stdout=1")
    assert old.content_type == RAW_STREAM


@pytest.mark.parametrize("made_before", [False, True])
async def test_who_follows_hears_of_tasks_that_come_later(
    client: ClientSession, room: SwarmRoom, made_before: bool
) -> None:
    """Also of those whose container is there, and not started: its log would end at once, with nothing in it."""
    service, logs = room.store.services[await create(client)], Logs(room)
    if made_before:
        late = await room.run(service)
        there = room.containers.find(late.status.container_id)
        room.containers.records[there.id] = but(there, state=replace(there.state, status="created"))
    response = await client.get("/services/web/logs?stdout=1&follow=1")
    if not made_before:
        late = await room.run(service)
    container = late.status.container_id
    for _ in range(2):
        labels = {"com.docker.swarm.service.id": service.id, "com.docker.swarm.task.id": late.id}
        room.events.publish("container", "start", container, labels)
    logs.of(container).put_nowait(b"late\n")
    assert await response.content.readany() == b"late\n"
    logs.of(container).put_nowait(None)
    await client.delete("/services/web")
    assert await response.read() == b""


async def test_a_client_that_goes_while_lines_wait_leaves_nobody_behind(client: ClientSession, room: SwarmRoom) -> None:
    """More pieces wait than there is room for: whoever carries them must not wait for a reader that has gone."""
    service, logs = room.store.services[await create(client)], Logs(room)
    containers = [(await room.run(service, slot)).status.container_id for slot in range(1, 5)]
    for container in containers:
        for _ in range(200):
            logs.of(container).put_nowait(bytes(1 << 16))
    before = len(asyncio.all_tasks())
    response = await client.get("/services/web/logs?stdout=1&follow=1")
    await response.content.read(1000)
    response.close()
    await until(lambda: logs.closed == set(containers))
    await until(lambda: len(asyncio.all_tasks()) <= before)


async def test_a_log_that_fails_ends_with_the_others(client: ClientSession, room: SwarmRoom) -> None:
    service = room.store.services[await create(client)]
    await room.run(service)

    async def broken(reference: str, query: object, form: object) -> AsyncIterator[bytes]:
        yield b"one\n"
        raise OSError("the disk is broken")

    room.containers.logs = broken  # type: ignore[method-assign,assignment]
    response = await client.get("/services/web/logs?stdout=1")
    assert await response.read() == b"one\n"
