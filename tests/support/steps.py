"""Steps of builds without a daemon: the parts of the engine that they need, on roots of their own."""

import asyncio
import contextlib
import functools
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from husk.builder.graph.operations import CacheMount, Exec, ExecMount, ProcessSpec
from husk.builder.graph.progress import Status
from husk.builder.graph.stacks import elements
from husk.builder.solver.sessions import Session
from husk.builder.steps.cache_mounts import CacheMountRecord, CacheMounts
from husk.builder.steps.mounts import Diffs, Mounts
from husk.builder.steps.run import Steps
from husk.builder.store.cache_directories import CacheDirectories
from husk.config import Config
from husk.engine.host import EngineHost
from husk.engine.model.build import CACHE_MOUNT
from husk.engine.model.container import Container
from husk.engine.model.events import Events
from husk.engine.networks.service import Networks
from husk.errors import NotFound
from husk.registry.manifest import Platform
from husk.runtime.assembly import cgroup
from husk.runtime.assembly.paths import Paths
from husk.runtime.assembly.step import StepFiles
from husk.runtime.runtimes import Runtimes, find_runtimes
from husk.runtime.supervise.foreground import Foreground
from husk.storage.state.store import StateStore

APPLETS = (
    "sh", "cat", "chmod", "cp", "echo", "env", "grep", "head", "hostname", "id", "ip", "kill", "ln", "ls", "mkdir",
    "mknod", "mount", "mv", "nc", "ping", "printf", "pwd", "rm", "rmdir", "seq", "sleep", "stat", "test", "touch",
    "tr", "true", "false", "ulimit", "umount", "wc",
)  # fmt: skip


class Place:
    """A workspace on the disk."""

    def __init__(self, stacks: "StacksOnDisk", lower: list[str], directory: Path) -> None:
        self._stacks = stacks
        self.lower = lower
        self.upper = directory / "upper"
        self.work = directory / "work"
        self.kept = ""

    async def keep(self, *, layered: bool = False) -> str:
        if not os.listdir(self.upper):
            return ""
        name = secrets.token_hex(6)
        self.upper.rename(self._stacks.root / name)
        self.kept = f"diff:{name}"
        return self.kept


class StacksOnDisk:
    """The part of `husk.storage` for stacks, as simple as can be: each element is a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.open = 0

    def lower(self, stack: str) -> list[str]:
        return [str(self.root / element.partition(":")[2]) for element in reversed(elements(stack))]

    async def remove(self, elements: Iterable[str]) -> None:
        for element in elements:
            shutil.rmtree(self.path(element))

    @asynccontextmanager
    async def held(self, *stacks: str) -> AsyncIterator[None]:
        yield

    @asynccontextmanager
    async def workspace(self, stack: str) -> AsyncIterator[Place]:
        directory = self.root / f"work-{secrets.token_hex(6)}"
        place = Place(self, self.lower(stack), directory)
        for each in (place.upper, place.work):
            each.mkdir(parents=True)
        if stack:
            place.upper.chmod(os.stat(place.lower[0]).st_mode & 0o7777)
        self.open += 1
        try:
            yield place
        finally:
            self.open -= 1
            shutil.rmtree(directory)

    def add(self, name: str) -> Path:
        """A directory that is the element `diff:<name>`."""
        path = self.root / name
        path.mkdir()
        return path

    def path(self, stack: str) -> Path:
        """The directory of the topmost element."""
        return self.root / elements(stack)[-1].partition(":")[2]


class Listener:
    """A watcher of a step, who allows all that can be allowed."""

    def __init__(self, session: Session | None = None) -> None:
        self.session = session
        self.granted: Collection[str] = ("network.host", "security.insecure")
        self.stdout = b""
        self.stderr = b""
        self.heard = asyncio.Event()

    def log(self, data: bytes, *, stderr: bool = False) -> None:
        if stderr:
            self.stderr += data
        else:
            self.stdout += data
        self.heard.set()

    def status(self, status: Status) -> None:
        raise AssertionError(status)

    async def hears(self, text: bytes) -> None:
        async with asyncio.timeout(30):
            while text not in self.stdout + self.stderr:
                self.heard.clear()
                await self.heard.wait()


class FakeSession:
    """A client with secrets and agents; an agent repeats what it is told."""

    id = "session"
    shared_key = ""

    def __init__(self, secret: dict[str, bytes] | None = None, agents: Sequence[str] = ()) -> None:
        self._secrets = secret or {}
        self._agents = agents

    async def secret(self, id: str, /) -> bytes:
        if id not in self._secrets:
            raise NotFound(f"secret {id} not found")
        return self._secrets[id]

    async def check_agent(self, id: str, /) -> None:
        if id not in self._agents:
            raise NotFound(f"no agent {id}")

    async def forward_agent(self, id: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, /) -> None:
        with contextlib.suppress(OSError):
            while line := await reader.readline():
                writer.write(f"{id} says ".encode() + line)
                await writer.drain()
        writer.close()


@dataclass
class Bench:
    """Runs steps."""

    config: Config
    stacks: StacksOnDisk
    steps: Steps
    networks: Networks
    caches: CacheMounts
    runtimes: Runtimes
    paths: Paths
    events: Events
    steps_on: Callable[[Diffs], Steps]
    made: list[Steps]
    root: str = "diff:busybox"
    seen: list[Listener] = field(default_factory=list)

    async def close_steps(self) -> None:
        """No step follows any more."""
        for steps in self.made:
            await steps.close()

    async def run(
        self,
        *args: str,
        mounts: Sequence[ExecMount] = (),
        inputs: Sequence[str] = (),
        session: FakeSession | None = None,
        platform: Platform | None = None,
        body: Mapping[str, object] | None = None,
        root: ExecMount | None = None,
        listener: Listener | None = None,
        **process: object,
    ) -> tuple[list[str], Listener]:
        """The outputs of a step on busybox, and what it has said. Further inputs are counted from 1 on."""
        listener = listener or Listener(session)  # type: ignore[arg-type]
        self.seen.append(listener)
        exec = Exec(
            process=ProcessSpec(args=list(args), **process),  # type: ignore[arg-type]
            mounts=[root or ExecMount(target="/", input=0, output=0), *mounts],
            **(body or {}),  # type: ignore[arg-type]
        )
        return await self.steps.run(exec, [self.root, *inputs], listener, platform), listener

    async def sh(self, script: str, **words: object) -> str:
        """Return the output of a shell's script."""
        _, listener = await self.run("sh", "-c", script, **words)  # type: ignore[arg-type]
        return listener.stdout.decode()


def cache(target: str, id: str = "c", sharing: str = "shared", **words: object) -> ExecMount:
    return ExecMount(target=target, kind=CacheMount(id, sharing), **words)  # type: ignore[arg-type]


def make_busybox(root: Path) -> None:
    for name in ("bin", "etc", "tmp", "root", "run"):
        (root / name).mkdir()
    (root / "tmp").chmod(0o1777)
    shutil.copy("/bin/busybox", root / "bin" / "busybox")
    for name in APPLETS:
        (root / "bin" / name).symlink_to("busybox")
    (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\nada:x:1000:\nwheel:x:10:ada\n")


def _nobody(reference: str) -> Container:
    raise NotFound(reference)


@asynccontextmanager
async def open_bench(config: Config, runtime: str = "") -> AsyncIterator[Bench]:
    async with AsyncExitStack() as stack:
        state = StateStore.open(config.data_root / "state.db")
        stack.callback(state.close)
        events = Events()
        networks = await Networks.open(config, state, events, [], _nobody)
        stack.push_async_callback(networks.close, remove=True)
        stack.callback(cgroup.remove, config.cgroup_parent)
        runtimes = await find_runtimes(config)
        stack.callback(runtimes.close)
        host = EngineHost.probe(runtime or runtimes.default.name)
        stacks = StacksOnDisk(config.data_root / "stacks")
        if not stacks.root.exists():
            stacks.root.mkdir()
            make_busybox(stacks.add("busybox"))
        kept = state.records(CACHE_MOUNT, CacheMountRecord)
        directories = await asyncio.to_thread(CacheDirectories.open, config.data_root / "cache-mounts", set(kept))
        caches = await CacheMounts.open(directories, state, kept.values())
        stack.push_async_callback(caches.close)
        paths = Paths(config)
        made: list[Steps] = []

        def steps_on(diffs: Diffs) -> Steps:
            steps = Steps(
                paths=paths,
                files=functools.partial(StepFiles, paths),
                mounts=Mounts(diffs, caches),
                networks=networks,
                runtimes=runtimes,
                foreground=Foreground(),
                host=host,
                defaults=config.containers,
                entitlements=("network.host", "security.insecure"),
            )
            stack.push_async_callback(steps.close)
            made.append(steps)
            return steps

        yield Bench(config, stacks, steps_on(stacks), networks, caches, runtimes, paths, events, steps_on, made)
