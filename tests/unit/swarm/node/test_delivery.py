"""Secrets and configs as a task's files: where they are, what is in them, and that they go with their task."""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from husk.errors import InvalidParameter
from husk.storage.secrets.task_files import TaskFile, TaskFiles
from husk.swarm.model.placement import NodeFacts
from husk.swarm.model.services import (
    ClusterObject,
    ConfigReference,
    ContainerSpec,
    DriverSpec,
    FileTarget,
    ObjectSpec,
    SecretReference,
    Service,
    Task,
    TaskSpec,
)
from husk.swarm.node.delivery import Deliveries, SealedValues
from husk.swarm.spec.expand import words_of
from tests.unit.swarm.swarm_room import SwarmRoom, spec, task


class FakeFiles:
    def __init__(self) -> None:
        self.written: dict[str, Sequence[TaskFile]] = {}
        self.stuck: set[str] = set()

    def write(self, task_id: str, files: Sequence[TaskFile]) -> list[Path]:
        self.written[task_id] = files
        return [Path(f"/files/{task_id}/{number}") for number in range(len(files))]

    def drop(self, task_id: str) -> None:
        if task_id in self.stuck:
            raise OSError(16, "Device or resource busy")
        self.written.pop(task_id, None)

    def tasks(self) -> list[str]:
        return list(self.written)


class Post:
    def __init__(self, room: SwarmRoom) -> None:
        self.room, self.files = room, FakeFiles()
        self.deliveries = Deliveries(cast(TaskFiles, self.files), SealedValues(room.store, room.sealer))

    async def put(self, kind: str, name: str, value: bytes, templating: str = "") -> ClusterObject:
        objects = self.room.services.secrets if kind == "secret" else self.room.services.configs
        data = base64.b64encode(value).decode()
        driver = DriverSpec(name=templating) if templating else None
        return await objects.create(ObjectSpec(name=name, data=data, templating=driver))

    def task(self, **container: Any) -> Task:
        wanted = spec(task_template=TaskSpec(container_spec=ContainerSpec(image="busybox", **container)))
        return task(Service(id="s", version=1, created_at="", updated_at="", spec=wanted))

    async def deliver(self, one: Task) -> list[tuple[str, str]]:
        service = Service(id="s", version=1, created_at="", updated_at="", spec=spec())
        mounts = await self.deliveries.deliver(one, words_of(one, service, NodeFacts(id="n", hostname="alpha")))
        assert all(mount.read_only and mount.type == "bind" for mount in mounts)
        return [(mount.source, mount.target) for mount in mounts]


@pytest.fixture
def post(room: SwarmRoom) -> Post:
    return Post(room)


def secret(record: ClusterObject, **target: Any) -> SecretReference:
    return SecretReference(file=FileTarget(**target), secret_id=record.id, secret_name=record.name)


async def test_each_file_has_its_place_its_value_and_its_owner(post: Post) -> None:
    password, settings = await post.put("secret", "password", b"hunter2"), await post.put("config", "app", b"a=1")
    config = ConfigReference(file=FileTarget(name="/etc/app.conf"), config_id=settings.id, config_name="app")
    one = post.task(
        secrets=[secret(password), secret(password, name="db", uid="7", gid="8", mode=0o100400)], configs=[config]
    )
    assert await post.deliver(one) == [
        (f"/files/{one.id}/0", "/run/secrets/password"),
        (f"/files/{one.id}/1", "/run/secrets/db"),
        (f"/files/{one.id}/2", "/etc/app.conf"),
    ]
    assert post.files.written[one.id] == [
        TaskFile(b"hunter2", 0, 0, 0o444), TaskFile(b"hunter2", 7, 8, 0o400), TaskFile(b"a=1", 0, 0, 0o444),
    ]  # fmt: skip


async def test_a_task_without_any_needs_no_files(post: Post) -> None:
    assert await post.deliver(post.task()) == [] and post.files.written == {}
    post.files.stuck.add("task-web-1")
    await post.deliveries.release(post.task())


async def test_a_template_is_filled_in_with_the_task_and_its_other_files(post: Post) -> None:
    password = await post.put("secret", "password", b"hunter2")
    template = await post.put("config", "app", b'{{.Service.Name}} {{secret "db"}}', "golang")
    plain = await post.put("config", "plain", b"{{.Service.Name}}")
    config = [
        ConfigReference(file=FileTarget(name=f"/{one.name}"), config_id=one.id, config_name=one.name)
        for one in (template, plain)
    ]
    one = post.task(secrets=[secret(password, name="db")], configs=config)
    await post.deliver(one)
    assert [file.content for file in post.files.written[one.id]][1:] == [b"web hunter2", b"{{.Service.Name}}"]


async def test_what_is_not_there_or_no_number_fails_the_task_and_writes_nothing(post: Post) -> None:
    password = await post.put("secret", "password", b"hunter2")
    template = await post.put("config", "app", b'{{secret "nothing"}}', "golang")
    config = ConfigReference(file=FileTarget(name="/a"), config_id=template.id, config_name="app")
    with pytest.raises(InvalidParameter, match=r"failed to expand templated config .* secret target nothing not found"):
        await post.deliver(post.task(configs=[config]))
    with pytest.raises(InvalidParameter, match="invalid owner 'root' of a secret or config"):
        await post.deliver(post.task(secrets=[secret(password, uid="root")]))
    await post.room.services.secrets.remove("password")
    with pytest.raises(InvalidParameter, match=f"secret {password.id} not found"):
        await post.deliver(post.task(secrets=[secret(password)]))
    assert post.files.written == {}


async def test_files_go_with_their_task(post: Post) -> None:
    one = post.task(secrets=[secret(await post.put("secret", "password", b"hunter2"))])
    await post.deliver(one)
    await post.deliveries.release(one)
    await post.deliveries.release(one)
    assert post.files.written == {}


async def test_a_start_drops_what_a_former_daemon_left(post: Post) -> None:
    for name in ("task-web-1", "task-web-2", "unknown", "stuck"):
        post.files.written[name] = []
    post.files.stuck.add("stuck")
    service = await post.room.services.create(spec(), None)
    await post.room.store.save(task(service), task(service, slot=2, state="failed"))
    await post.deliveries.sweep(post.room.services.alive_tasks())
    assert post.files.tasks() == ["task-web-1", "stuck"]
