"""Every operation that the API serves has a method that reaches it."""

import base64
from collections.abc import AsyncIterable, Awaitable, Callable
from typing import Any

import pytest

from husk.api.http.response import Response, fields
from husk.api.routes import all_routes
from husk.client.calls import Calls
from husk.client.client import Client
from husk.client.container import Container
from husk.client.image import Image
from husk.client.networks import Network
from husk.client.plugins import Plugin
from husk.client.service_files import ServiceConfig, ServiceSecret
from husk.client.services import Service, Task
from husk.client.swarm import Node
from husk.client.volumes import Volume
from tests.support.fake_engine import FakeEngine

# Enough of an answer for every operation that answers with a document.
ANYTHING = {
    "Id": "x",
    "ID": "x",
    "Name": "x",
    "Version": {"Index": 1},
    "Spec": {"Mode": {"Replicated": {"Replicas": 1}}},
    "StatusCode": 0,
    "ExitCode": 0,
    "read": "2026-01-02T03:04:05Z",
    "Descriptor": {"digest": "x"},
    "Volumes": [],
    "UnlockKey": "x",
    "SpaceReclaimed": 0,
}
LISTS = [
    "/configs",
    "/containers/json",
    "/containers/x/changes",
    "/images/json",
    "/images/x/history",
    "/images/x/attestations",
    "/images/search",
    "/networks",
    "/nodes",
    "/plugins",
    "/secrets",
    "/services",
    "/tasks",
]
STAT = base64.b64encode(b'{"name":"x","size":0,"mode":0,"mtime":"2026-01-02T03:04:05Z"}').decode()


class Things:
    """A client, and one of each thing with the name x."""

    def __init__(self, client: Client, engine: FakeEngine) -> None:
        calls = Calls(engine.dial)
        self.engine = client
        self.box = Container(calls, ANYTHING)
        self.image = Image(calls, {**ANYTHING, "RepoTags": ["x"]})
        self.network = Network(calls, ANYTHING)
        self.volume = Volume(calls, ANYTHING)
        self.service = Service(calls, ANYTHING)
        self.task = Task(calls, ANYTHING)
        self.node = Node(calls, ANYTHING)
        self.secret = ServiceSecret(calls, ANYTHING)
        self.config = ServiceConfig(calls, ANYTHING)
        self.plugin = Plugin(calls, ANYTHING)


async def all_of(things: AsyncIterable[Any]) -> None:
    async for _ in things:
        pass


async def attached(box: Container) -> None:
    async with box.attach():
        pass


async def resized(box: Container) -> None:
    console = await box.exec("x", tty=True).open()
    async with console:
        await console.resize(1, 1)


async def ended(box: Container) -> None:
    process = box.exec("x")
    await process.start()
    await process.end()


async def looked_at(box: Container) -> None:
    process = box.exec("x")
    await process.start()
    await process.inspect()


METHODS: dict[str, Callable[[Things], Awaitable[Any]]] = {
    "GET /_ping": lambda x: x.engine.ping(),
    "POST /auth": lambda x: x.engine.login("me", "x"),
    "POST /build": lambda x: all_of(x.engine.images.building(fileobj="FROM x")),
    "POST /build/prune": lambda x: x.engine.images.prune_builds(),
    "POST /commit": lambda x: x.box.commit("x"),
    "GET /configs": lambda x: x.engine.configs.list(),
    "POST /configs/create": lambda x: x.engine.configs.create("x", b""),
    "GET /configs/{id}": lambda x: x.engine.configs.get("x"),
    "POST /configs/{id}/update": lambda x: x.config.update(labels={}),
    "DELETE /configs/{id}": lambda x: x.config.remove(),
    "GET /containers/json": lambda x: x.engine.containers.list(),
    "POST /containers/create": lambda x: x.engine.containers.create("x"),
    "POST /containers/prune": lambda x: x.engine.containers.prune(),
    "GET /containers/{id}/json": lambda x: x.engine.containers.get("x"),
    "DELETE /containers/{id}": lambda x: x.box.remove(),
    "GET /containers/{id}/archive": lambda x: all_of(x.box.get_archive("/x")),
    "HEAD /containers/{id}/archive": lambda x: x.box.stat("/x"),
    "PUT /containers/{id}/archive": lambda x: x.box.put_archive("/", b""),
    "POST /containers/{id}/attach": lambda x: attached(x.box),
    "GET /containers/{id}/changes": lambda x: x.box.diff(),
    "POST /containers/{id}/exec": lambda x: x.box.exec("x").start(),
    "GET /containers/{id}/export": lambda x: all_of(x.box.export()),
    "POST /containers/{id}/kill": lambda x: x.box.kill(),
    "GET /containers/{id}/logs": lambda x: all_of(x.box.logs()),
    "POST /containers/{id}/pause": lambda x: x.box.pause(),
    "POST /containers/{id}/rename": lambda x: x.box.rename("x"),
    "POST /containers/{id}/resize": lambda x: x.box.resize(1, 1),
    "POST /containers/{id}/restart": lambda x: x.box.restart(),
    "POST /containers/{id}/start": lambda x: x.box.start(),
    "GET /containers/{id}/stats": lambda x: all_of(x.box.stats()),
    "POST /containers/{id}/stop": lambda x: x.box.stop(),
    "GET /containers/{id}/top": lambda x: x.box.top(),
    "POST /containers/{id}/unpause": lambda x: x.box.unpause(),
    "POST /containers/{id}/update": lambda x: x.box.update(Memory=1),
    "POST /containers/{id}/wait": lambda x: x.box.wait(),
    "GET /distribution/{name}/json": lambda x: x.engine.images.get_registry_data("x"),
    "GET /events": lambda x: all_of(x.engine.events()),
    "DELETE /exec/{id}": lambda x: ended(x.box),
    "GET /exec/{id}/json": lambda x: looked_at(x.box),
    "POST /exec/{id}/resize": lambda x: resized(x.box),
    "POST /exec/{id}/start": lambda x: x.box.exec("x").start(),
    "POST /images/create": lambda x: x.engine.images.pull("x"),
    "GET /images/get": lambda x: all_of(x.engine.images.save("x", "y")),
    "GET /images/json": lambda x: x.engine.images.list(),
    "POST /images/load": lambda x: x.engine.images.load(b""),
    "POST /images/prune": lambda x: x.engine.images.prune(),
    "GET /images/search": lambda x: x.engine.images.search("x"),
    "DELETE /images/{name}": lambda x: x.engine.images.remove("x"),
    "GET /images/{name}/attestations": lambda x: x.image.attestations(),
    "GET /images/{name}/get": lambda x: all_of(x.image.save()),
    "GET /images/{name}/history": lambda x: x.image.history(),
    "GET /images/{name}/json": lambda x: x.engine.images.get("x"),
    "POST /images/{name}/push": lambda x: x.engine.images.push("x"),
    "POST /images/{name}/tag": lambda x: x.image.tag("y"),
    "GET /info": lambda x: x.engine.info(),
    "GET /networks": lambda x: x.engine.networks.list(),
    "POST /networks/create": lambda x: x.engine.networks.create("x"),
    "POST /networks/prune": lambda x: x.engine.networks.prune(),
    "GET /networks/{id}": lambda x: x.engine.networks.get("x"),
    "DELETE /networks/{id}": lambda x: x.network.remove(),
    "POST /networks/{id}/connect": lambda x: x.network.connect("x"),
    "POST /networks/{id}/disconnect": lambda x: x.network.disconnect("x"),
    "GET /nodes": lambda x: x.engine.nodes.list(),
    "GET /nodes/{id}": lambda x: x.engine.nodes.get("x"),
    "DELETE /nodes/{id}": lambda x: x.node.remove(),
    "POST /nodes/{id}/update": lambda x: x.node.update(role="worker"),
    "GET /plugins": lambda x: x.engine.plugins.list(),
    "GET /plugins/{name}/json": lambda x: x.engine.plugins.get("x"),
    "DELETE /plugins/{name}": lambda x: x.plugin.remove(),
    "POST /plugins/{name}/disable": lambda x: x.plugin.disable(),
    "POST /plugins/{name}/enable": lambda x: x.plugin.enable(),
    "POST /plugins/{name}/push": lambda x: x.plugin.push(),
    "POST /plugins/{name}/set": lambda x: x.plugin.configure(["a=b"]),
    "GET /secrets": lambda x: x.engine.secrets.list(),
    "POST /secrets/create": lambda x: x.engine.secrets.create("x", b""),
    "GET /secrets/{id}": lambda x: x.engine.secrets.get("x"),
    "POST /secrets/{id}/update": lambda x: x.secret.update(labels={}),
    "DELETE /secrets/{id}": lambda x: x.secret.remove(),
    "GET /services": lambda x: x.engine.services.list(),
    "POST /services/create": lambda x: x.engine.services.create("x"),
    "GET /services/{id}": lambda x: x.engine.services.get("x"),
    "DELETE /services/{id}": lambda x: x.service.remove(),
    "GET /services/{id}/logs": lambda x: all_of(x.service.logs()),
    "POST /services/{id}/update": lambda x: x.service.scale(2),
    "GET /swarm": lambda x: x.engine.swarm.inspect(),
    "POST /swarm/backup": lambda x: x.engine.swarm.backup("x"),
    "POST /swarm/restore": lambda x: x.engine.swarm.restore(b"x", "x"),
    "POST /swarm/init": lambda x: x.engine.swarm.init(),
    "POST /swarm/join": lambda x: x.engine.swarm.join(["x"], "x"),
    "POST /swarm/leave": lambda x: x.engine.swarm.leave(),
    "POST /swarm/unlock": lambda x: x.engine.swarm.unlock("x"),
    "GET /swarm/unlockkey": lambda x: x.engine.swarm.get_unlock_key(),
    "POST /swarm/update": lambda x: x.engine.swarm.update(),
    "GET /system/df": lambda x: x.engine.df(),
    "GET /tasks": lambda x: x.engine.tasks.list(),
    "GET /tasks/{id}": lambda x: x.engine.tasks.get("x"),
    "GET /tasks/{id}/logs": lambda x: all_of(x.task.logs()),
    "GET /version": lambda x: x.engine.version(),
    "GET /volumes": lambda x: x.engine.volumes.list(),
    "POST /volumes/create": lambda x: x.engine.volumes.create(),
    "POST /volumes/prune": lambda x: x.engine.volumes.prune(),
    "GET /volumes/{name}": lambda x: x.engine.volumes.get("x"),
    "DELETE /volumes/{name}": lambda x: x.volume.remove(),
}
# Other ways to what a method does already, for clients that can do no other; or to what is no call of a program.
WITHOUT = {
    "HEAD /_ping": "ping asks by GET",
    "POST /build/cancel": "for builds by version=2; those of build and building end when their caller leaves",
    "POST /containers/run": "what run asks a Husk for, and tests/unit/client/test_runs.py; others do not have it",
    "GET /containers/{id}/attach/ws": "attach does the same without WebSockets, which are for browsers",
    "GET /openapi.json": "describes operations for programs that have no client of ours",
    "POST /grpc": "BuildKit's own protocol, which docker buildx speaks; build uses POST /build",
    "POST /session": "as POST /grpc",
}


def test_none_is_forgotten():
    served = {f"{route.method} {route.pattern}" for route in all_routes()}
    assert served == METHODS.keys() | WITHOUT.keys()


@pytest.fixture
def things(client, engine, monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    engine.otherwise = ANYTHING
    for path in LISTS:
        engine.answers("GET", path, [])
    engine.answers("DELETE", "/images/x", [])
    engine.answers("HEAD", "/containers/x/archive", Response(200, b"", fields({"X-Docker-Container-Path-Stat": STAT})))
    return Things(client, engine)


@pytest.mark.parametrize("operation", METHODS)
async def test_each_is_reached_by_its_method(things, engine, operation):
    await METHODS[operation](things)
    asked = {f"{each.method} {each.path}" for each in engine.asked}
    assert operation.replace("{id}", "x").replace("{name}", "x") in asked
