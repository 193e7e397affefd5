"""Callers that cancel a call, at any of its awaits, find nothing of it afterwards."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from husk.client.container import Container
from husk.client.runs import MOST_INPUT
from husk.library.embedded import Engine
from tests.support.cancelling import cut_everywhere
from tests.support.engines import Place
from tests.support.fake_registry import FakeRegistry
from tests.support.registry import Registry, make_image, tar_of
from tests.support.waiting import until_async

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it runs real containers"),
    pytest.mark.asyncio(loop_scope="module"),
]
Check = Callable[[str], Awaitable[None]]


class Watched:
    """An engine, and what it has to do at the moment."""

    def __init__(self, place: Place, engine: Engine) -> None:
        self.place = place
        self.engine = engine
        self.kept: frozenset[str] = frozenset()
        self._at_rest = self._here()

    def _here(self) -> set[str]:
        """Tasks of the program's loop besides the one that asks, and those of a registry that is played in it."""
        others = (task for task in asyncio.all_tasks() if task is not asyncio.current_task())
        return {task.get_name() for task in others if "RequestHandler" not in repr(task.get_coro())}

    async def keep(self, *containers: Container) -> None:
        self.kept = frozenset(container.id for container in containers)

    async def check(self, when: str) -> None:
        """Fail if a call has left something: a container, an image, a process, a mount, a connection or a task."""
        names = {container.id for container in await self.engine.containers.list(all=True)}
        assert names == self.kept, f"containers are left: {when}"
        assert [image.tags for image in await self.engine.images.list()] == [["busybox:latest"]], when
        networks = {network.name for network in await self.engine.networks.list()}
        assert networks == {"bridge", "host", "none"}, f"networks are left: {when}"
        assert await self.engine.volumes.list() == [], f"volumes are left: {when}"
        await self.be_quiet(when)

    async def be_quiet(self, when: str) -> None:
        """Fail if somebody still works on a call, or something of it is on the host."""
        edge = self.engine._home.opened.result()

        def busy() -> list[object]:
            calls, crowd = self.engine._calls, edge.server.crowd
            return [
                *(self._here() - self._at_rest),
                *[f"{calls.tasks.count} tasks of the client"] * bool(calls.tasks.count),
                *edge._streams,
                *[f"{edge._common.changes.count} changes"] * bool(edge._common.changes.count),
                *[f"{len(crowd)} connections, {len(calls._idle)} are kept"] * (len(crowd) > len(calls._idle)),
            ]

        try:
            await until_async(lambda: not busy(), "quiet", deadline=30)
        except AssertionError:
            raise AssertionError(f"{busy()}: {when}") from None
        if not self.kept:
            assert self.place.traces.settle(os.getpid()) == [], when


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def watched() -> AsyncIterator[Watched]:
    with Place() as place:
        async with Engine.open(place.config) as engine:
            yield Watched(place, engine)


def in_a_box(box: Container, watched: Watched) -> list[bytes]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if box.id.encode() in (entry / "cgroup").read_bytes():
                found.append((entry / "cmdline").read_bytes())
        except OSError:
            continue
    return found


async def test_running_to_the_end(watched: Watched):
    await cut_everywhere(lambda: watched.engine.run("busybox", "cat", input=b"x", network="none"), watched.check, 2)


async def test_running_with_much_input(watched: Watched):
    much = bytes(MOST_INPUT + 1)
    await cut_everywhere(lambda: watched.engine.run("busybox", "wc -c", input=much, network="none"), watched.check, 5)


async def test_a_container_for_a_block(watched: Watched):
    async def block() -> None:
        async with watched.engine.container("busybox", "sleep 100", volumes=["/data"]) as box:
            await box.put("/a", b"x")
            await box.get("/a")
            async for _ in box.logs():
                pass

    await cut_everywhere(block, watched.check, 8)


async def test_creating(watched: Watched):
    async def create_and_remove() -> None:
        box = await watched.engine.containers.create("busybox", "true")
        await watched.engine._calls.tasks.to_its_end(box.remove(), "the test's own")

    await cut_everywhere(create_and_remove, watched.check)


async def test_processes_in_a_container(watched: Watched):
    async with watched.engine.container("busybox", "sleep 100") as box:
        await watched.keep(box)

        async def check(when: str) -> None:
            await watched.check(when)
            assert in_a_box(box, watched) == [b"sleep\x00100\x00"], when

        await until_async(lambda: in_a_box(box, watched) == [b"sleep\x00100\x00"], "its process is the program")
        await cut_everywhere(lambda: box.exec(["sh", "-c", "echo hi; exec sleep 0.05"])._result(), check, 5)
        await cut_everywhere(lambda: box.put("/in/data", b"x" * 300_000), watched.check)
        await cut_everywhere(lambda: box.get("/bin/busybox"), watched.check)
    await watched.keep()


async def test_committing(watched: Watched):
    async with watched.engine.container("busybox", "sleep 100") as box:
        await watched.keep(box)

        async def commit() -> None:
            image = await box.commit("mine:1")
            undo = watched.engine._calls.delete(f"/images/{image.id}")
            await watched.engine._calls.tasks.to_its_end(undo, "the test's own")

        await cut_everywhere(commit, watched.check)
    await watched.keep()


async def test_networks_and_volumes(watched: Watched):
    engine = watched.engine

    async def network() -> None:
        made = await engine.networks.create("mine")
        await engine._calls.tasks.to_its_end(made.remove(), "the test's own")

    async def volume() -> None:
        made = await engine.volumes.create("mine")
        await engine._calls.tasks.to_its_end(made.remove(), "the test's own")

    await cut_everywhere(network, watched.check)
    await cut_everywhere(volume, watched.check)


async def test_naming(watched: Watched):
    """A name that is new is gone again, one that was another image's is that one's."""
    image = await watched.engine.images.get("busybox")

    async def name_it() -> None:
        await watched.engine.images.tag("busybox", "mine:1")
        await watched.engine._calls.tasks.to_its_end(watched.engine.images.remove("mine:1"), "the test's own")

    await cut_everywhere(name_it, watched.check, 2)
    await cut_everywhere(lambda: image.tag("busybox:latest"), watched.check, 2)


async def test_pulling_and_building(watched: Watched):
    """An image that is there already when the call is cut off is one as any other; nothing else stays, and nobody
    works."""
    engine = watched.engine

    async def check(when: str) -> None:
        await watched.be_quiet(when)
        for image in await engine.images.list():
            if "busybox:latest" not in image.tags:
                await engine.images.remove(image, force=True)
        await watched.check(when)

    async with FakeRegistry() as registry:
        registry.add("app", "1", make_image([tar_of({"file": b"x" * 100_000})]))

        async def pull() -> None:
            await engine.images.pull(f"{registry.host}/app:1")
            await engine.images.remove(f"{registry.host}/app:1")

        await cut_everywhere(pull, check, 2)

    async def build() -> None:
        await engine.images.build(fileobj="FROM busybox\nRUN echo built > /file\n", tag="built:1", nocache=True)

    await cut_everywhere(build, check, 2)
    await check("built")


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with Registry() as real:
        yield real


async def test_pushing(watched: Watched, registry: Registry):
    """The registry keeps what it has got; here the image is as it was, and nobody sends any more."""
    engine = watched.engine
    repositories = iter(range(1000))

    async def push() -> None:
        name = f"{registry.host}/pushed/{next(repositories)}:1"
        await engine.images.tag("busybox", name)
        try:
            await engine.images.push(name)
        finally:
            await engine._calls.tasks.to_its_end(engine.images.remove(name), "the test's own")

    await cut_everywhere(push, watched.check, 4)


async def test_saving(watched: Watched):
    async def save() -> None:
        async for _ in watched.engine.images.save("busybox"):
            pass

    await cut_everywhere(save, watched.check, 2)


async def test_loading_and_importing(watched: Watched):
    """An image that is there already when the call is cut off is one as any other; nothing else stays."""
    engine = watched.engine
    await engine.images.build(fileobj="FROM busybox\nRUN echo built > /file\n", tag="loaded:1")
    archive = b"".join([piece async for piece in engine.images.save("loaded:1")])

    async def remove_others() -> None:
        for image in await engine.images.list(all=True):
            if "busybox:latest" not in image.tags:
                await engine.images.remove(image, force=True)

    async def check(when: str) -> None:
        await watched.be_quiet(when)
        await remove_others()
        await watched.check(when)

    await remove_others()

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(archive), 1 << 18):
            yield archive[start : start + (1 << 18)]

    async def load() -> None:
        await engine.images.load(pieces())
        await engine.images.remove("loaded:1")

    await cut_everywhere(load, check, 3)

    async def import_one() -> None:
        image = await engine.images.import_image(tar_of({"file": b"x" * 100_000}), "imported:1")
        await engine.images.remove(image)

    await cut_everywhere(import_one, check, 3)


async def test_a_swarm(watched: Watched):
    engine = watched.engine

    async def make_one() -> None:
        await engine.swarm.init(advertise_addr="127.0.0.1")
        await engine._calls.tasks.to_its_end(engine.swarm.leave(force=True), "the test's own")

    async def check(when: str) -> None:
        assert (await engine.info())["Swarm"]["LocalNodeState"] == "inactive", when
        await watched.check(when)

    await cut_everywhere(make_one, check)


async def test_services_secrets_and_configs(watched: Watched):
    engine = watched.engine
    await engine.swarm.init(advertise_addr="127.0.0.1")

    async def check(when: str) -> None:
        assert await engine.services.list() == [], when
        assert await engine.secrets.list() == [], when
        assert await engine.configs.list() == [], when
        # A service that is removed ends its tasks by and by.
        await nothing_runs(when)
        await watched.be_quiet(when)

    async def nothing_runs(when: str) -> None:
        async with asyncio.timeout(30):
            while await engine.containers.list(all=True) or await engine.tasks.list():
                await asyncio.sleep(0.02)

    async def secret() -> None:
        made = await engine.secrets.create("password", b"hunter2")
        await engine._calls.tasks.to_its_end(made.remove(), "the test's own")

    async def config() -> None:
        made = await engine.configs.create("settings", b"a=b")
        await engine._calls.tasks.to_its_end(made.remove(), "the test's own")

    async def service() -> None:
        made = await engine.services.create("busybox", "sleep 100", name="mine", stop_grace_period=0.1)
        await engine._calls.tasks.to_its_end(made.remove(), "the test's own")

    try:
        await cut_everywhere(secret, check)
        await cut_everywhere(config, check)
        await cut_everywhere(service, check)
    finally:
        await engine.swarm.leave(force=True)
    await watched.check("the swarm was left")
