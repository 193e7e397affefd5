"""An engine without a host: it keeps records in memory and does what the test told it to."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

from husk.config import Config
from husk.engine.containers.exec import ExecRecord
from husk.engine.containers.index import Exit
from husk.engine.images.catalog import FoundImage
from husk.engine.logs.read import Form
from husk.engine.logs.records import LogQuery, take_apart
from husk.engine.model.container import Container, State
from husk.engine.model.container_config import ContainerConfig, EndpointRequest, ExecConfig, HostConfig
from husk.engine.model.events import Events
from husk.engine.model.filters import Filters
from husk.engine.model.image import CommitOptions, Image, Progress, Removal
from husk.engine.model.network import Network
from husk.engine.model.paths import HostPaths
from husk.engine.networks.load_balancer import LoadBalancer
from husk.errors import NotFound
from husk.registry.manifest import Descriptor, Platform
from tests.unit.api.fake_system import FakeSystem

T = TypeVar("T")

BUSYBOX = "sha256:" + "ab" * 32
NOW = "2026-01-02T03:04:05.000000006Z"


def container(name: str = "web", **changes: object) -> Container:
    values: dict[str, object] = {
        "id": (name.encode().hex() + "0" * 64)[:64],
        "name": name,
        "created": NOW,
        "created_ns": 1_767_323_045_000_000_006,
        "image_id": BUSYBOX,
        "config": ContainerConfig(image="busybox", cmd=["sleep", "60"]),
        "host_config": HostConfig(network_mode="bridge"),
        "path": "sleep",
        "args": ["60"],
        "state": State(),
    }
    return Container(**{**values, **changes})  # type: ignore[arg-type]


def image(**changes: object) -> Image:
    values: dict[str, object] = {
        "id": BUSYBOX,
        "created": NOW,
        "architecture": "amd64",
        "os": "linux",
        "config": ContainerConfig(cmd=["sh"], env=["PATH=/bin"]),
        "diff_ids": ["sha256:" + "cd" * 32],
        "chain_ids": ["sha256:" + "cd" * 32],
        "size": 4_000_000,
    }
    return Image(**{**values, **changes})  # type: ignore[arg-type]


@dataclass
class Recorder:
    """Every call, in order, as (verb, arguments); `failures` are raised and `gates` waited for before it counts."""

    calls: list[tuple[object, ...]] = field(default_factory=list)
    failures: dict[str, Exception] = field(default_factory=dict)
    gates: dict[str, asyncio.Event] = field(default_factory=dict)
    waiting: int = 0

    async def note(self, verb: str, *arguments: object) -> None:
        if verb in self.gates:
            self.waiting += 1
            await self.gates[verb].wait()
        if verb in self.failures:
            raise self.failures[verb]
        self.calls.append((verb, *arguments))


class FakeAttachment:
    """Echoes its input as output of the container; ends when stdin ends, unless `endless`."""

    def __init__(self, tty: bool, endless: bool = False) -> None:
        self.tty = tty
        self.endless = endless
        self.received = bytearray()
        self.stdin_closed = asyncio.Event()
        self.was_detached = False
        self.was_closed = asyncio.Event()
        self.given_up = asyncio.Event()
        self.feed: asyncio.Queue[tuple[int, bytes] | None] = asyncio.Queue()

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        while (item := await self.feed.get()) is not None:
            yield item

    async def write(self, data: bytes) -> None:
        self.received += data
        self.feed.put_nowait((1, data))

    async def close_stdin(self) -> None:
        self.stdin_closed.set()
        if not self.endless:
            self.feed.put_nowait((2, b"bye"))
            self.feed.put_nowait(None)

    def detached(self) -> None:
        self.was_detached = True

    async def dropped(self) -> None:
        await self.given_up.wait()

    async def close(self) -> None:
        self.was_closed.set()


class FakeContainers:
    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.records: dict[str, Container] = {}
        self.exits: dict[str, asyncio.Future[Exit]] = {}
        self.log: list[bytes] = []  # as conmon writes it
        self.queries: list[LogQuery] = []
        self.listed: list[tuple[bool, int, Filters]] = []
        self.attachment: FakeAttachment | None = None
        self.attached: dict[str, bool] = {}
        self.created: tuple[str, ContainerConfig, HostConfig, dict[str, EndpointRequest], str] | None = None

    def host_paths(self, container: Container) -> HostPaths:
        at = f"/var/lib/test/containers/{container.id}"
        lower = ["/var/lib/test/mount-points", *(f"/var/lib/test/layers/{layer}" for layer in container.layers)]
        return HostPaths(
            resolv_conf=f"{at}/resolv.conf",
            hostname=f"{at}/hostname",
            hosts=f"{at}/hosts",
            log=f"{at}/container.log",
            lower=lower,
            upper=f"{at}/diff",
            work=f"{at}/work",
            merged=f"{at}/rootfs",
        )

    def add(self, record: Container) -> Container:
        self.records[record.name] = record
        return record

    def names(self) -> dict[str, list[str]]:
        return {record.id: [record.name] for record in self.records.values()}

    def find(self, ref: str) -> Container:
        for record in self.records.values():
            if ref in (record.id, record.name):
                return record
        raise NotFound(f"No such container: {ref}")

    async def create(
        self,
        name: str,
        config: ContainerConfig,
        host_config: HostConfig,
        endpoints: dict[str, EndpointRequest],
        platform: str,
        *,
        awaited: bool = False,
    ) -> object:
        await self.recorder.note("create", name)
        self.created = (name, config, host_config, endpoints, platform)
        record = self.add(container(name or "unnamed", config=config, host_config=host_config))
        return SimpleNamespace(container=record, warnings=["a warning"])

    async def start(self, ref: str, *, awaited: bool = False) -> None:
        await self.recorder.note("start", ref)

    async def stop(self, ref: str, timeout: int | None, signal: str) -> None:
        await self.recorder.note("stop", ref, timeout, signal)

    async def restart(self, ref: str, timeout: int | None, signal: str) -> None:
        await self.recorder.note("restart", ref, timeout, signal)

    async def kill(self, ref: str, signal: str) -> None:
        await self.recorder.note("kill", ref, signal)

    async def pause(self, ref: str) -> None:
        await self.recorder.note("pause", ref)

    async def unpause(self, ref: str) -> None:
        await self.recorder.note("unpause", ref)

    async def rename(self, ref: str, name: str) -> None:
        await self.recorder.note("rename", ref, name)

    async def resize(self, ref: str, height: int, width: int) -> None:
        await self.recorder.note("resize", ref, height, width)

    async def remove(self, ref: str, force: bool, volumes: bool, link: bool) -> None:
        await self.recorder.note("remove", ref, force, volumes, link)

    def watch(self, ref: str, condition: str) -> Awaitable[Exit]:
        self.find(ref)
        self.exits[ref] = asyncio.get_running_loop().create_future()
        return self.exits[ref]

    def listing(self, all: bool, limit: int, filters: Filters) -> list[Container]:
        self.listed.append((all, limit, filters))
        return [c for c in self.records.values() if all or c.state.running]

    async def sizes(self, record: Container) -> tuple[int, int]:
        return 10, 4_000_010

    async def sizes_of(self, records: Sequence[Container]) -> list[tuple[int, int]]:
        return [await self.sizes(record) for record in records]

    def logs(self, ref: str, query: LogQuery, form: Form[T]) -> AsyncIterator[T]:
        self.find(ref)
        self.queries.append(query)
        return self._batches(form)

    async def _batches(self, form: Form[T]) -> AsyncIterator[T]:
        for text in self.log:
            yield form.encode(take_apart(text))

    async def attach(self, ref: str, **wanted: bool) -> FakeAttachment:
        self.find(ref)
        self.attached = wanted
        assert self.attachment is not None
        return self.attachment


class FakeImages:
    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.records = {"busybox": image()}
        self.revision = 0
        self.pulling: Callable[[Callable[[Progress], None]], Coroutine[object, object, None]] | None = None
        self.pulled: tuple[object, ...] = ()

    def find(self, ref: str) -> Image:
        for name, record in self.records.items():
            if ref in (name, record.id):
                return record
        raise NotFound(f"No such image: {ref}")

    def select(self, ref: str, platform: Platform | None) -> FoundImage:
        return FoundImage(self.find(ref), None)

    def meant_by(self, ref: str) -> set[str]:
        return {self.find(ref).id}

    def target(self, record: Image) -> Descriptor:
        return Descriptor(media_type="manifest", digest=record.manifest, size=record.manifest_size)

    def size(self, record: Image) -> int:
        return record.size

    def tags(self, record: Image, patterns: Sequence[str] = ()) -> list[str]:
        return [f"{name}:latest" for name, other in self.records.items() if other is record]

    def digests(self, record: Image, patterns: Sequence[str] = ()) -> list[str]:
        return []

    def listing(self, all: bool, filters: Filters) -> list[Image]:
        return list(self.records.values())

    def containers_of(self, record: Image) -> int:
        return 0

    def shared_size(self, record: Image) -> int:
        return 7

    def directories(self, chain_ids: Sequence[str]) -> list[str]:
        return [f"/layers/{chain_id}" for chain_id in chain_ids]

    async def pull(
        self, name: str, tag: str, platform: str, auth: object, progress: Callable[[Progress], None]
    ) -> None:
        self.pulled = (name, tag, platform, auth)
        if self.pulling is not None:
            await self.pulling(progress)

    async def remove(self, ref: str, force: bool, noprune: bool, platforms: Sequence[Platform] = ()) -> list[Removal]:
        await self.recorder.note("rmi", ref, force, noprune)
        return [Removal(untagged="busybox:latest"), Removal(deleted=BUSYBOX)]

    async def tag(self, ref: str, repo: str, tag: str) -> None:
        await self.recorder.note("tag", ref, repo, tag)

    async def login(self, credentials: object) -> str:
        await self.recorder.note("login", credentials)
        return "a-token"


class FakeNetworks:
    def __init__(self, containers: FakeContainers) -> None:
        self.containers = containers
        self.records = [
            Network(
                id="b" * 64, name="bridge", driver="bridge", created=NOW, subnet="172.17.0.0/16", gateway="172.17.0.1"
            ),
            Network(id="c" * 64, name="host", driver="host", created=NOW),
            Network(id="d" * 64, name="none", driver="null", created=NOW),
        ]

    def listing(self) -> list[Network]:
        return self.records

    async def warnings(self) -> list[str]:
        return ["WARNING: somebody drops packets"]

    def find(self, ref: str) -> Network:
        for record in self.records:
            if ref in (record.id, record.name):
                return record
        raise NotFound(f"network {ref} not found")

    def members(self, network: Network) -> list[Container]:
        return [c for c in self.containers.records.values() if c.state.running and network.name in c.endpoints]

    def addresses(self, network: Network) -> tuple[int, int] | None:
        return None

    def load_balancer(self, network: Network) -> LoadBalancer | None:
        return None


class FakeExecs:
    """Execs of which none has ended."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.records: dict[str, ExecRecord] = {}
        self.attachment: object = None

    async def check_user(self, reference: str, user: str) -> None:
        await self._recorder.note("exec user", reference, user)

    async def create(self, reference: str, config: ExecConfig) -> str:
        return self.add(reference, config)

    def add(self, reference: str, config: ExecConfig) -> str:
        record = ExecRecord(id=f"{len(self.records):064x}", container_id=reference, config=config)
        self.records[record.id] = record
        return record.id

    def unfinished(self, container_id: str) -> list[str]:
        return [record.id for record in self.records.values() if record.container_id == container_id]

    def inspect(self, exec_id: str) -> ExecRecord:
        if exec_id not in self.records:
            raise NotFound(f"No such exec instance: {exec_id}")
        return self.records[exec_id]

    async def start(self, exec_id: str, *, attach: bool, tty: bool = False, size: list[int] | None = None) -> object:
        self.inspect(exec_id)
        await self._recorder.note("exec start", exec_id, attach, tty, size)
        return self.attachment

    async def resize(self, exec_id: str, height: int, width: int) -> None:
        await self._recorder.note("exec resize", exec_id, height, width)


class FakeCluster:
    active = False
    locked = False


class FakeSwarmNetworks:
    def needed(self, network: object) -> bool:
        return False


class FakeSwarm:
    cluster = FakeCluster()
    networks = FakeSwarmNetworks()


class FakeVolumes:
    def listing(self, filters: Filters) -> list[object]:
        return []


class FakeEngine:
    swarm_state = "inactive"

    def __init__(self) -> None:
        self.config = Config(data_root=Path("/var/lib/test"), insecure_registries=("10.0.0.0/8", "reg.local:5000"))
        self.recorder = Recorder()
        self.events = Events()
        self.containers = FakeContainers(self.recorder)
        self.execs = FakeExecs(self.recorder)
        self.images = FakeImages(self.recorder)
        self.networks = FakeNetworks(self.containers)
        self.system = FakeSystem()
        self.swarm = FakeSwarm()
        self.volumes = FakeVolumes()
        self.verbs = SimpleNamespace()
        self.committed: CommitOptions | None = None
        self.builder: Any = None

    @property
    def swarm_if_any(self) -> Any:
        return self.swarm

    async def commit(self, ref: str, options: CommitOptions) -> str:
        await self.recorder.note("commit", ref)
        self.committed = options
        return "sha256:" + "ef" * 32

    @property
    def calls(self) -> list[tuple[object, ...]]:
        return self.recorder.calls
