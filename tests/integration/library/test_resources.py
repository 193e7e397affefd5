"""All that is not a container, by the library's methods, with a real engine and a real registry."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

import husk
from husk.errors import BuildError, Conflict, Forbidden, HuskError, NotFound
from tests.support.cancelling import cut_everywhere
from tests.support.engines import Place
from tests.support.machine import ARCHITECTURE
from tests.support.registry import PASSWORD, USERNAME, Registry, tar_of
from tests.support.waiting import until_async

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it runs real containers"),
    pytest.mark.asyncio(loop_scope="module"),
]
AUTH = {"username": USERNAME, "password": PASSWORD}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine() -> AsyncIterator[husk.Engine]:
    with Place() as place:
        async with husk.Engine.open(place.config) as engine:
            yield engine


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with Registry(login=True) as registry:
        yield registry


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    return tmp_path


async def test_to_a_registry_and_back(engine: husk.Engine, registry: Registry, no_credentials: Path):
    name = f"{registry.host}/team/app:1"
    image = await engine.images.get("busybox")
    await image.tag(name)
    assert name in image.tags
    with pytest.raises(HuskError, match=r"auth|denied|unauthorized"):
        await engine.images.push(name)
    lines = [line async for line in engine.images.pushing(name, auth=AUTH)]
    pushed = lines[-1].digest
    assert pushed.startswith("sha256:")
    assert any(line.status == "Pushed" and line.id for line in lines)

    (no_credentials / "config.json").write_text(json.dumps({"auths": {registry.host: AUTH}}))
    data = await engine.images.get_registry_data(name)
    assert (data.id, data.platforms) == (pushed, [f"linux/{ARCHITECTURE}"])

    await engine.images.remove(name)
    with pytest.raises(NotFound):
        await engine.images.get(name)
    lines = [line async for line in engine.images.pulling(name)]
    assert [line.digest for line in lines if line.digest] == [pushed]
    assert await engine.images.get(name) == image
    await engine.images.remove(name)

    (no_credentials / "config.json").unlink()
    with pytest.raises(HuskError):
        await engine.login("somebody", "wrong", registry=registry.host)
    await engine.login(USERNAME, PASSWORD, registry=registry.host)
    assert await engine.images.pull(name) == image
    await engine.images.remove(name)


async def test_in_an_archive_and_back(engine: husk.Engine):
    image = await engine.images.get("busybox")
    await engine.images.tag(image, "two:1")
    archive = b"".join([piece async for piece in engine.images.save("busybox", "two:1")])
    await engine.images.remove("two:1")
    loaded = await engine.images.load(archive)
    assert {tag for each in loaded for tag in each.tags} == {"busybox:latest", "two:1"}
    assert b"".join([piece async for piece in (await engine.images.get("two:1")).save()])
    await engine.images.remove("two:1")

    made = await engine.images.import_image(
        tar_of({"etc/motd": b"hello"}), "files:1", changes=['CMD ["sh"]', "ENV A=b"], message="why"
    )
    assert (made.tags, made.attrs["Config"]["Env"]) == (["files:1"], ["A=b"])
    assert [step["Comment"] for step in await made.history()] == ["why"]
    assert made in await engine.images.list("files")
    assert {"Deleted": made.id} in await made.remove()


async def test_building(engine: husk.Engine, tmp_path: Path):
    (tmp_path / "Dockerfile").write_text(
        "FROM busybox AS base\nARG WHO=nobody\nCOPY . /in\nRUN ls /in > /seen && echo $WHO >> /seen\nCMD cat /seen\n"
    )
    (tmp_path / ".dockerignore").write_text("*.log\n.dockerignore\nDockerfile\n")
    (tmp_path / "kept").write_text("x")
    (tmp_path / "left.log").write_text("x")
    lines = [
        line
        async for line in engine.images.building(
            path=tmp_path, tag=["built:1", "built:2"], buildargs={"WHO": "me"}, labels={"l": "1"}, network_mode="none"
        )
    ]
    assert [line.step for line in lines if line.step] == [1, 2, 3, 4, 5, 6]  # the label is the last one
    image = await engine.images.get(next(line.image for line in lines if line.image))
    assert (sorted(image.tags), image.labels) == (["built:1", "built:2"], {"l": "1"})
    assert (await engine.run("built:1", network="none")).stdout == b"kept\nme\n"

    assert await engine.images.build(fileobj="FROM built:1\n", tag="built:3")
    with pytest.raises(BuildError, match="non-zero code: 3") as failed:
        await engine.images.build(fileobj="FROM busybox\nRUN echo told; exit 3\n", network_mode="none")
    assert (failed.value.code, "told" in failed.value.log) == (3, True)
    for number in (1, 2, 3):
        await engine.images.remove(f"built:{number}")
    assert (await engine.images.prune_builds(all=True))["SpaceReclaimed"] > 0


async def test_networks_volumes_and_what_happens(engine: husk.Engine):
    before = await now(engine)
    network = await engine.networks.create("inner", internal=True, labels={"a": "b"})
    volume = await engine.volumes.create("cache", labels={"a": "b"})
    assert await engine.volumes.create("cache") == volume
    with pytest.raises(Conflict):
        await engine.networks.create("inner")
    command = ["sh", "-c", "echo $$ > /cache/pid; exec sleep 100"]
    async with engine.container("busybox", command, volumes=["cache:/cache"], network="none") as box:
        await engine.networks.get("none")
        with pytest.raises(HuskError):
            await network.connect(box)  # it is on none
        with pytest.raises(Conflict):
            await volume.remove()
    async with engine.container("busybox", command, volumes=["cache:/cache"]) as box:
        await network.connect(box, aliases=["db"])
        await network.reload()
        assert [each["Name"] for each in network.containers.values()] == [box.name]
        with pytest.raises(Forbidden):
            await network.remove()
        stats = await box.stats_now()
        assert stats.memory_usage > 0 and stats.pids == 1 and stats.attrs["id"] == box.id
        pid = Path(volume.mountpoint, "pid")
        await until_async(lambda: pid.exists() and pid.read_text() == "1\n", "a file of the container")
        found = await box.stat("/cache/pid")
        assert found.is_file and found.size == 2
        assert (await box.stat("/cache")).is_dir
        await network.disconnect(box)
    happened = [event async for event in engine.events(since=before, until=await now(engine))]
    assert {("network", "create"), ("volume", "create"), ("container", "die"), ("network", "disconnect")} <= {
        (event.type, event.action) for event in happened
    }
    await engine.networks.create("unused")
    pruned = await engine.prune(volumes=True, filters={"label!": ["a=b"]})
    assert pruned.networks == ["unused"]
    assert volume in await engine.volumes.list(filters={"label": "a=b"})
    await network.remove()
    await volume.remove()


async def now(engine: husk.Engine) -> str:
    return str((await engine.info())["SystemTime"])


async def test_whoever_is_cancelled_leaves_nothing(engine: husk.Engine):
    async def gone(when: str) -> None:
        assert {network.name for network in await engine.networks.list()} == {"bridge", "host", "none"}, when
        assert await engine.volumes.list() == [], when
        assert [image.tags for image in await engine.images.list()] == [["busybox:latest"]], when

    async def network() -> None:
        made = await engine.networks.create("cut", internal=True)
        await engine._calls.tasks.to_its_end(made.remove(), "the test's own")

    async def volume() -> None:
        made = await engine.volumes.create("cut")
        await engine._calls.tasks.to_its_end(made.remove(), "the test's own")

    await cut_everywhere(network, gone, 2)
    await cut_everywhere(volume, gone, 3)


async def test_services(engine: husk.Engine):
    node_id = await engine.swarm.init(advertise_addr="127.0.0.1", task_history_retention_limit=1)
    try:
        (node,) = await engine.nodes.list()
        assert (node.id, node.role) == (node_id, "manager")
        await node.update(labels={"disk": "ssd"})
        secret = await engine.secrets.create("password", b"hunter2")
        config = await engine.configs.create("motd", "hello")
        assert config.data == b"hello"

        async def one_more() -> None:
            made = await engine.secrets.create("cut", b"x")
            await engine._calls.tasks.to_its_end(made.remove(), "the test's own")

        async def gone(when: str) -> None:
            assert await engine.secrets.list() == [secret], when

        await cut_everywhere(one_more, gone, 2)
        service = await engine.services.create(
            "busybox",
            ["sh", "-c", "cat /run/secrets/pass /motd; echo; exec sleep 100"],
            name="web",
            secrets=[secret.reference("pass")],
            configs=[config.reference("/motd")],
            constraints=["node.labels.disk==ssd"],
            memory="32m",
            stop_grace_period=0.1,
        )
        await running(service, 1)
        async for line in service.logs(follow=True).lines():
            assert line == "hunter2hello"
            break
        await service.scale(2)
        await running(service, 2)
        await service.update(environment={"A": "b"}, replicas=1)
        await running(service, 1, "A=b")
        await service.rollback()
        assert service.replicas == 2
        (one, *_) = await service.tasks(filters={"desired-state": "running"})
        assert await engine.tasks.get(one.id) == one
        assert await engine.services.list(filters={"name": "web"}) == [service]
        await service.remove()
        assert await engine.services.list() == []
        await engine.swarm.update(labels={"a": "b"})
        assert (await engine.swarm.inspect())["Spec"]["Labels"] == {"a": "b"}
    finally:
        await engine.swarm.leave(force=True)


async def running(service: husk.Service, count: int, environment: str = "") -> None:
    async def as_wanted() -> bool:
        tasks = await service.tasks(filters={"desired-state": "running"})
        specs = [task.attrs["Spec"]["ContainerSpec"].get("Env", []) for task in tasks]
        alike = all(environment in spec for spec in specs) if environment else True
        return len(tasks) == count and alike and all(task.state == "running" for task in tasks)

    async with asyncio.timeout(20):
        while not await as_wanted():
            await asyncio.sleep(0.01)
