"""The life of a step on doubles: whatever fails, all is given back."""

import asyncio
import shutil
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from husk.aio.tasks import Tasks
from husk.builder.graph.operations import Exec, ExecMount, ProcessSpec
from husk.builder.solver.sessions import Session
from husk.builder.steps.mounts import Prepared
from husk.builder.steps.plan import StepFailed
from husk.builder.steps.run import Spares, Steps
from husk.config import Config, ContainerDefaults
from husk.engine.model.container import Draft, Endpoint
from husk.engine.networks.connector import Connected
from husk.errors import Forbidden, SystemFault
from husk.runtime.assembly.paths import Paths
from husk.runtime.assembly.step import Layered, StepMount
from husk.runtime.oci import OCIRuntime
from husk.runtime.spec.document import SpecMount as SpecMount
from husk.runtime.supervise.begun import ContainerEnd
from husk.runtime.supervise.stdio import Streams
from tests.support.drivers import HOST
from tests.support.steps import Listener

MOST_REMOVED = 2


class World:
    """All doubles of one step: what happened, and where something fails."""

    def __init__(self, directory: Path) -> None:
        self.happened: list[str] = []
        self.fails_at = ""
        self.ended = ContainerEnd(0)
        self.hangs = asyncio.Event()
        self.hangs.set()
        self.removes = threading.Event()
        self.removes.set()
        self.leaves = asyncio.Event()
        self.leaves.set()
        self.leaving = asyncio.Event()
        self.dropped: list[str] = []
        self.config: dict[str, object] = {}
        self.sockets: Sequence[socket.socket] = ()
        self._directory = directory
        self.rootfs = directory / "rootfs"

    def happens(self, what: str) -> None:
        self.happened.append(what)
        if what == self.fails_at:
            raise SystemFault(what)

    # mounts

    @asynccontextmanager
    async def prepared(self, body: Exec, inputs: Sequence[str], session: Session | None) -> AsyncIterator[Prepared]:
        self.happens("prepared")
        try:
            yield Prepared(root=Layered(()), mounts=[], env=["S=t"], agents=[], kept={0: ("a", self)})  # type: ignore[dict-item]
        finally:
            self.leaving.set()
            await self.leaves.wait()
            self.happened.append("done")

    async def drop(self, diffs: Iterable[str]) -> None:
        self.dropped += diffs

    async def keep(self, *, layered: bool = False) -> str:
        self.happens("keep")
        return "diff:new"

    # networks

    def endpoints(self, mode: str, requests: object, links: object = None) -> dict[str, Endpoint]:
        return {}

    async def connect(self, draft: Draft) -> Connected:
        self.happens("connect")
        return Connected(())

    async def disconnect(self, draft: Draft) -> None:
        self.happens("disconnect")

    # files

    def assemble(
        self, root: Layered, mounts: Sequence[StepMount], hosts: str, resolv_conf: str
    ) -> tuple[SpecMount, ...]:
        self.happens("assemble")
        return ()

    def text_of(self, path: str) -> str:
        return ""

    def make_directory(self, path: str, uid: int, gid: int) -> None:
        self.happens("make_directory")

    def write_bundle(self, config: dict[str, object]) -> bytes:
        self.config = config
        self.happens("write_bundle")
        return b"written"

    def release(self) -> None:
        self.unmount()
        self.remove()

    def unmount(self) -> None:
        self.happens("unmount")

    def remove(self) -> None:
        assert self.removes.wait(30)
        self.happens("remove")

    # runtime

    def get(self, name: str) -> OCIRuntime:
        return OCIRuntime("crun", "/usr/bin/crun", (), self._directory)

    def expect(self) -> None:
        return None

    def begin(self, directory: Path, container_id: str, runtime: OCIRuntime) -> "World":
        self.container_id, self.directory = container_id, directory
        return self

    waits = False

    async def start(self) -> None:
        raise AssertionError("this runtime reads no pipes")

    async def run(self, config: bytes, output: Callable[[bytes, bool], None], command: str = "") -> ContainerEnd:
        assert config == b"written"
        output(b"out", False)
        output(b"err", True)
        self.happens("run")
        await self.hangs.wait()
        return self.ended

    async def end(self) -> None:
        self.runs = False

    async def discard(self) -> None:
        raise AssertionError("there is no spare")

    async def talk(
        self, directory: Path, container_id: str, runtime: OCIRuntime, streams: Streams, command: str = ""
    ) -> ContainerEnd:
        self.happens("talk")
        return self.ended

    async def talk_beside(
        self,
        directory: Path,
        container_id: str,
        runtime: OCIRuntime,
        spec: bytes,
        streams: Streams,
        command: str = "",
    ) -> ContainerEnd:
        self.happens("talk beside")
        return self.ended


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def steps(world: World, tmp_path: Path) -> Steps:
    return Steps(
        paths=Paths(Config(data_root=tmp_path / "data", exec_root=tmp_path / "run")),
        files=lambda id: world,
        mounts=world,  # type: ignore[arg-type]
        networks=world,
        runtimes=world,
        foreground=world,
        host=HOST,
        defaults=ContainerDefaults(),
        most_removed=MOST_REMOVED,
    )


BODY = Exec(process=ProcessSpec(args=["/bin/x", "y"]), mounts=[ExecMount(target="/", input=0, output=0)])
ALL = [
    "prepared",
    "connect",
    "assemble",
    "make_directory",
    "write_bundle",
    "run",
    "unmount",
    "remove",
    "disconnect",
    "keep",
    "done",
]


async def test_a_step_that_ends_well(steps: Steps, world: World) -> None:
    listener = Listener()
    assert await steps.run(BODY, ["a"], listener, followed=False) == ["a diff:new"]
    assert sorted(world.happened[6:9]) == ["disconnect", "remove", "unmount"]
    assert [*world.happened[:6], "unmount", "remove", "disconnect", *world.happened[9:]] == ALL
    assert (listener.stdout, listener.stderr) == (b"out", b"err")
    process = world.config["process"]
    assert isinstance(process, dict)
    assert process["args"] == ["/bin/x", "y"]
    assert "S=t" in process["env"]


@pytest.mark.parametrize(("words", "name"), [({"network": "host"}, "network.host"), ({"insecure": True}, "security")])
async def test_nothing_runs_that_the_user_did_not_allow(steps, world, words, name):
    """Every way to a process is closed: a step, one that somebody talks with, and one beside that."""
    body = replace(BODY, **words)
    listener = Listener()
    listener.granted = ()
    any_: Any = None
    talks = steps.talk(any_, body, any_, listener, any_, any_)
    beside = steps.talk_beside(any_, body, any_, listener, any_, any_, Path("/nowhere"))
    for work in (steps.run(body, ["a"], listener), talks, beside, steps.held(body, ["a"], None).__aenter__()):
        with pytest.raises(Forbidden, match=name):
            await work
    assert world.happened == []


async def test_a_step_that_another_follows_does_not_wait_until_its_files_are_removed(
    steps: Steps, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.removes.clear()
    world.fails_at = "remove"
    for _ in range(MOST_REMOVED):
        assert await steps.run(BODY, ["a"], Listener()) == ["a diff:new"]
    assert "unmount" in world.happened and "remove" not in world.happened
    # They do not pile up: one more waits for its own.
    one_more = Tasks().spawn(steps.run(BODY, ["a"], Listener()), "a step", awaited=True)
    async with asyncio.timeout(30):
        while world.happened.count("unmount") <= MOST_REMOVED:
            await asyncio.sleep(0.005)
    assert not one_more.done()
    world.removes.set()
    await one_more
    await steps.close()
    assert world.happened.count("remove") == MOST_REMOVED + 1
    assert caplog.text.count("remove") == MOST_REMOVED + 1


async def test_what_is_still_mounted_is_not_removed(steps: Steps, world: World) -> None:
    world.fails_at = "unmount"
    assert await steps.run(BODY, ["a"], Listener()) == ["a diff:new"]
    await steps.close()
    assert "remove" not in world.happened


@pytest.mark.parametrize("point", ["connect", "assemble", "make_directory", "write_bundle", "run", "keep"])
async def test_whatever_fails_all_is_given_back(steps: Steps, world: World, point: str) -> None:
    world.fails_at = point
    with pytest.raises(SystemFault, match=point):
        await steps.run(BODY, ["a"], Listener())
    assert {"unmount", "disconnect", "done"} <= set(world.happened)


@pytest.mark.parametrize("point", ["unmount", "disconnect"])
async def test_one_that_cannot_be_given_back_keeps_no_other(
    steps: Steps, world: World, point: str, caplog: pytest.LogCaptureFixture
) -> None:
    world.fails_at = point
    assert await steps.run(BODY, ["a"], Listener()) == ["a diff:new"]
    assert {"unmount", "disconnect"} <= set(world.happened)
    assert f"{point}" in caplog.text


async def test_nothing_is_kept_of_a_step_that_fails(steps: Steps, world: World) -> None:
    world.ended = ContainerEnd(5)
    with pytest.raises(StepFailed, match="exit code: 5"):
        await steps.run(BODY, ["a"], Listener())
    assert "keep" not in world.happened
    assert world.happened[-1] == "done"


async def test_a_program_that_cannot_be_started(steps: Steps, world: World) -> None:
    world.ended = ContainerEnd(1, 'exec: "/bin/x": stat /bin/x: no such file or directory')
    listener = Listener()
    with pytest.raises(StepFailed, match="exit code: 127"):
        await steps.run(BODY, ["a"], listener)
    assert listener.stderr.endswith(b'crun run failed: exec: "/bin/x": stat /bin/x: no such file or directory\n')


async def test_a_step_that_is_cancelled(steps: Steps, world: World) -> None:
    world.hangs.clear()
    listener = Listener()
    task = Tasks().spawn(steps.run(BODY, ["a"], listener), "a step", awaited=True)
    await listener.hears(b"err")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert {"unmount", "disconnect", "done"} <= set(world.happened)
    assert "keep" not in world.happened


async def test_what_is_kept_of_a_step_that_nobody_waits_for_any_more_is_dropped(steps: Steps, world: World) -> None:
    """Though it is cancelled while what it had is given back, and all is kept already."""
    world.leaves.clear()
    running = Tasks().spawn(steps.run(BODY, ["a"], Listener()), "a step", awaited=True)
    async with asyncio.timeout(30):
        await world.leaving.wait()
    assert "keep" in world.happened
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()
    assert world.dropped == ["diff:new"]
    await steps.close()


CRUN = OCIRuntime("crun", "/usr/bin/crun", (), Path("/root"), known_files=True)
RUNC = OCIRuntime("runc", "/usr/bin/runc", (), Path("/root"))


class Begun:
    def __init__(self, directory: Path, container_id: str) -> None:
        self.directory, self.container_id = directory, container_id
        self.waits = False

    async def start(self) -> None:
        self.directory.mkdir()
        (self.directory / "config.json").touch()
        self.waits = True

    async def run(self, config: bytes, output: Callable[[bytes, bool], None], command: str = "") -> ContainerEnd:
        raise AssertionError("nobody runs it here")

    async def end(self) -> None:
        self.waits = False

    async def discard(self) -> None:
        self.waits = False
        shutil.rmtree(self.directory)


class Foreground:
    def __init__(self) -> None:
        self.made: list[Begun] = []
        self.kind = Begun

    def begin(self, directory: Path, container_id: str, runtime: OCIRuntime) -> Begun:
        self.made.append(self.kind(directory, container_id))
        return self.made[-1]


@pytest.fixture
def foreground() -> Any:
    return Foreground()


@pytest.fixture
def spares(foreground: Any, tmp_path: Path) -> Spares:
    return Spares(foreground, lambda id: tmp_path / id, kept_for=60)


async def ready(spares: Spares, runtime: OCIRuntime = CRUN) -> None:
    spares.prepare(runtime)
    for _ in range(10):
        await asyncio.sleep(0)


async def test_it_is_the_next_step_s(spares: Spares, foreground: Any, tmp_path: Path) -> None:
    assert spares.take(CRUN) is None
    await ready(spares)
    await ready(spares)
    assert len(foreground.made) == 1, "one is enough"
    assert (begun := spares.take(CRUN)) is not None
    assert begun.waits and begun.directory == tmp_path / begun.container_id
    assert spares.take(CRUN) is None
    await spares.close()
    assert begun.waits, "whoever has taken it ends it"


async def test_nobody_gets_one_of_another_runtime(spares: Spares, foreground: Any) -> None:
    await ready(spares, RUNC)
    assert foreground.made == [], "it reads no pipes"
    await ready(spares)
    assert spares.take(RUNC) is None
    await spares.close()


async def test_what_nobody_takes_goes(foreground: Any, tmp_path: Path) -> None:
    spares = Spares(foreground, lambda id: tmp_path / id, kept_for=0.01)
    await ready(spares)
    async with asyncio.timeout(30):
        while list(tmp_path.iterdir()):
            await asyncio.sleep(0.005)
    assert not foreground.made[0].waits
    assert spares.take(CRUN) is None
    await spares.close()


async def test_nothing_stays_of_it_at_the_end(spares: Spares, foreground: Any, tmp_path: Path) -> None:
    spares.prepare(CRUN)
    await spares.close()
    assert not foreground.made[0].waits and list(tmp_path.iterdir()) == []
    await ready(spares)
    assert len(foreground.made) == 1, "none is made any more"


async def test_one_that_has_ended_by_itself_is_not_given(spares: Spares, foreground: Any, tmp_path: Path) -> None:
    await ready(spares)
    foreground.made[0].waits = False
    assert spares.take(CRUN) is None
    await spares.close()
    assert list(tmp_path.iterdir()) == []


async def test_one_that_cannot_be_started_is_missed_by_nobody(spares: Spares, foreground: Any, tmp_path: Path) -> None:
    class Broken(Begun):
        async def start(self) -> None:
            self.directory.mkdir()
            raise SystemFault("no room")

    foreground.kind = Broken
    await ready(spares)
    assert spares.take(CRUN) is None and list(tmp_path.iterdir()) == []
    foreground.kind = Begun
    await ready(spares)
    assert spares.take(CRUN) is not None
    await spares.close()
