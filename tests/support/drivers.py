"""Doubles of what containers need from the host: they keep in memory what the real ones do to it, and need no root.

A container "runs" here when its two processes, the first and its monitor, are in `FakeProcesses`; a test ends it with
`FakeHost.end`. `FakeHost.held` names everything that has been made for containers and not been given back.
"""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from husk.config import Config
from husk.engine.containers.drivers import Drivers
from husk.engine.containers.index import Instance
from husk.engine.host import EngineHost
from husk.engine.model.container import Container, Draft
from husk.engine.networks.connector import Connected
from husk.errors import SystemFault, Unavailable
from husk.kernel.lean_mounts import Bring
from husk.runtime.assembly.mount_points import MountPoints
from husk.runtime.assembly.paths import Paths
from husk.runtime.assembly.root import OpenDirectory
from husk.runtime.assembly.staging import StagedPart
from husk.runtime.oci import OCIRuntime
from husk.runtime.spec.host_facts import HostFacts
from husk.runtime.supervise.conmon import Apart, Bundle
from husk.storage.state.store import Change

T = TypeVar("T")

HOST = EngineHost(
    limits=HostFacts(), machine="x86_64", default_runtime="crun", init_path="", conmon_path="/usr/bin/conmon"
)


class FakeProcess:
    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.signals: list[int] = []
        self._ended = asyncio.Event()

    @property
    def has_ended(self) -> bool:
        return self._ended.is_set()

    def signal(self, number: int) -> bool:
        self.signals.append(number)
        return not self.has_ended

    async def wait(self) -> None:
        await self._ended.wait()

    def close(self) -> None:
        return None

    def end(self) -> None:
        self._ended.set()


class FakeProcesses:
    def __init__(self) -> None:
        self.running: dict[int, FakeProcess] = {}
        self._pids = itertools.count(100)

    def begin(self) -> FakeProcess:
        found = FakeProcess(next(self._pids))
        self.running[found.pid] = found
        return found

    def open(self, pid: int) -> FakeProcess:
        if pid not in self.running:
            raise ProcessLookupError(pid)
        return self.running[pid]

    def adopt(self, bundle: Bundle, pid: int, monitor_pid: int, monitor_started: int) -> "FakeSupervised | None":
        if monitor_pid not in self.running or monitor_started != monitor_pid * 10:
            return None
        if (process := self.running.get(pid)) is None:
            process = FakeProcess(pid)
            process.end()
        return FakeSupervised(process, self.running[monitor_pid])


class SilentConsole:
    """The streams of a process that says nothing until it has ended."""

    def __init__(self, process: FakeProcess) -> None:
        self._process = process

    async def accepted(self) -> None:
        return None

    async def read(self) -> tuple[int, bytes] | None:
        await self._process.wait()
        return None

    async def write(self, data: bytes) -> None:
        return None

    def close_stdin(self) -> None:
        return None

    def close(self) -> None:
        return None


class FakeSupervised:
    """A process and its monitor; nobody talks to it unless it has a console."""

    def __init__(self, process: FakeProcess, monitor: FakeProcess, console: SilentConsole | None = None) -> None:
        self.process = process
        self.pid = process.pid
        self.monitor_pid = monitor.pid
        self.monitor_started = monitor.pid * 10
        self._monitor = monitor
        self._console = console
        self.closed = False

    async def attach(self, *, accepts: bool = True) -> SilentConsole:
        if self._console is None:
            raise SystemFault("nobody talks to this container")
        return self._console

    async def wait(self) -> None:
        await self._monitor.wait()

    def close(self) -> None:
        self.closed = True


class FakeRoot:
    def __init__(self, held: set[str], directory: Path) -> None:
        self._held = held
        self._name = f"root {directory.name}"
        self.directory = directory
        self.upper = directory / "diff"
        self.merged = directory / "rootfs"
        self.files: dict[str, str] = {}

    @property
    def mounted(self) -> bool:
        return self._name in self._held

    def create(self) -> None:
        self.upper.mkdir(parents=True, exist_ok=True)

    def mount(self, lower: Sequence[str], *, volatile: bool = False) -> None:
        self._held.add(self._name)

    def unmount(self) -> None:
        self._held.discard(self._name)

    def remove(self) -> None:
        self.unmount()

    def unchanged(self) -> bool:
        return True

    def usage(self) -> int:
        return 0

    def text_of(self, path: str) -> str:
        return self.files.get(path, "")

    def make_directory(self, path: str) -> None:
        assert self.mounted

    def open_directory(self, path: str) -> OpenDirectory | None:
        assert self.mounted
        return None


class FakeAssembly:
    def __init__(self, held: set[str], paths: Paths) -> None:
        self._held = held
        self.paths = paths
        self.mount_points = MountPoints(paths.mount_points_layer, paths.other_mount_points)
        self._roots: dict[str, FakeRoot] = {}
        self.configs: dict[str, dict[str, object]] = {}
        self.out_of_memory: set[str] = set()
        self.thawed: list[str] = []
        # Paths of the host that never answer.
        self.silent: set[str] = set()

    def root(self, container_id: str) -> FakeRoot:
        return self._roots.setdefault(container_id, FakeRoot(self._held, self.paths.directory(container_id)))

    async def touch(self, path: str, work: Callable[[], T]) -> T:
        if path in self.silent:
            raise Unavailable(f"{path} does not answer")
        return work()

    def stage(self, container_id: str, parts: Mapping[int, StagedPart]) -> None:
        self._held.add(f"staging {container_id}")

    def unstage(self, container_id: str) -> None:
        self._held.discard(f"staging {container_id}")

    def make_shm(self, container_id: str, size: int) -> Path:
        self._held.add(f"shm {container_id}")
        return self.paths.shm(container_id)

    def release_shm(self, container_id: str) -> None:
        self._held.discard(f"shm {container_id}")

    def write_bundle(self, bundle: Bundle, config: dict[str, object]) -> None:
        self._held.add(f"bundle {bundle.container_id}")
        self.configs[bundle.container_id] = config

    def make_places(self, binds: Iterable[Bring]) -> None:
        return None

    def has_bundle(self, container_id: str) -> bool:
        return f"bundle {container_id}" in self._held

    def discard_bundle(self, container_id: str) -> None:
        self._held.discard(f"bundle {container_id}")

    def secure_procfs(self, pid: int, masked: Collection[str], readonly: Collection[str]) -> None:
        return None

    def oom_killed(self, path: str) -> bool:
        return path in self.out_of_memory

    def thaw(self, path: str) -> None:
        self.thawed.append(path)

    def clear_cgroup(self, path: str, *, named: bool) -> None:
        self._held.discard(f"cgroup {Path(path).name}")

    def discard(self, container_id: str) -> None:
        self._held.discard(f"directory {container_id}")

    def holds_little(self, container_id: str) -> bool:
        return self.root(container_id).unchanged()

    def discard_little(self, container_id: str) -> bool:
        if self.root(container_id).unchanged():
            self.discard(container_id)
            return True
        return False


class FakeMonitor:
    """The monitors of containers; `fails` is what the next start says instead of making a process."""

    def __init__(self, held: set[str], processes: FakeProcesses) -> None:
        self._held = held
        self._processes = processes
        self.fails: BaseException | None = None
        self.exits: dict[str, int] = {}
        self.ended_at: dict[str, int] = {}
        self.apart: dict[str, Apart | None] = {}
        self.makes_apart = True
        self.adopt = processes.adopt

    def expect(self) -> None:
        return None

    async def create(self, bundle: Bundle, runtime: OCIRuntime, *, apart: Apart | None = None) -> FakeSupervised:
        self.apart[bundle.container_id] = apart
        if self.fails is not None:
            failure, self.fails = self.fails, None
            raise failure
        self.exits.pop(bundle.container_id, None)
        self._held.add(f"cgroup {bundle.container_id}")
        return FakeSupervised(self._processes.begin(), self._processes.begin())

    def exit_status(self, bundle: Bundle) -> int | None:
        return self.exits.get(bundle.container_id)

    def exit_time(self, bundle: Bundle) -> int | None:
        return self.ended_at.get(bundle.container_id)

    def oom(self, bundle: Bundle) -> bool:
        return False


class FakeExecMonitor:
    """The monitors of execs; an exec's files are in `directories`, by its directory."""

    def __init__(self, processes: FakeProcesses) -> None:
        self._processes = processes
        self.adopt = processes.adopt
        self.directories: dict[Path, bytes | None] = {}
        self.specs: list[dict[str, object]] = []
        self.fails: BaseException | None = None
        self.exits: dict[Path, int] = {}

    def expect(self) -> None:
        return None

    def prepare(self, bundle: Bundle, of_container: Path) -> bytes:
        self.directories[bundle.directory] = None
        return b'{"process": {"args": ["first"], "env": ["A=1"]}}'

    async def start(
        self, bundle: Bundle, runtime: OCIRuntime, spec: dict[str, object], attached: bool
    ) -> FakeSupervised:
        if self.fails is not None:
            raise self.fails
        self.specs.append(spec)
        process, monitor = self._processes.begin(), self._processes.begin()
        return FakeSupervised(process, monitor, SilentConsole(process) if attached else None)

    def save(self, bundle: Bundle, record: bytes) -> None:
        self.directories[bundle.directory] = record

    def saved(self, directory: Path) -> list[tuple[Path, bytes | None]]:
        return list(self.directories.items())

    def discard(self, bundle: Bundle) -> None:
        self.directories.pop(bundle.directory, None)

    def exit_status(self, bundle: Bundle) -> int | None:
        return self.exits.get(bundle.directory)

    async def resize(self, bundle: Bundle, height: int, width: int) -> None:
        return None


class FakeRuntime(OCIRuntime, frozen=True):
    done: list[tuple[str, str]] = msgspec.field(default_factory=list)
    # Why it does not do these.
    refuses: dict[str, str] = msgspec.field(default_factory=dict)

    async def start(self, container_id: str) -> None:
        self.done.append(("start", container_id))

    async def delete(self, container_id: str, force: bool = False) -> None:
        self.done.append(("delete", container_id))

    def forget_ended(self, container_id: str, spared: str = "") -> bool:
        return False

    def has_ended(self, container_id: str) -> bool:
        return False

    async def pause(self, container_id: str) -> None:
        if "pause" in self.refuses:
            raise SystemFault(self.refuses["pause"])
        self.done.append(("pause", container_id))

    async def resume(self, container_id: str) -> None:
        self.done.append(("resume", container_id))


class FakeRuntimes:
    def __init__(self) -> None:
        self.runtime = FakeRuntime(
            name="crun", path="/usr/bin/crun", args=(), root=Path("/run/nowhere"), known_files=True
        )

    def get(self, name: str) -> OCIRuntime:
        return self.runtime

    def of(self, name: str) -> OCIRuntime:
        return self.runtime

    def known(self) -> list[OCIRuntime]:
        return [self.runtime]


class FakeNetworks:
    def __init__(self, held: set[str]) -> None:
        self._held = held

    async def connect(self, draft: Draft) -> Connected:
        self._held.add(f"sandbox {draft.id}")
        return Connected(host_gateways=())

    async def disconnect(self, draft: Draft) -> None:
        self._held.discard(f"sandbox {draft.id}")

    def forget(self, draft: Draft) -> None:
        assert f"sandbox {draft.id}" not in self._held


class FakeVolumes:
    def __init__(self, held: set[str]) -> None:
        self._held = held
        self.gone_with: list[tuple[str, bool]] = []

    async def mount(self, record: Container) -> None:
        self._held.add(f"volumes {record.id}")

    async def unmount(self, record: Container) -> None:
        self._held.discard(f"volumes {record.id}")

    @contextlib.asynccontextmanager
    async def going_with(self, record: Container, volumes: bool) -> AsyncIterator[list[Change]]:
        self.gone_with.append((record.id, volumes))
        yield []


class FakeLayers:
    def lower(self, chain_ids: Sequence[str]) -> list[str]:
        return [f"/layers/{chain}" for chain in reversed(chain_ids)]


class FakeLeftovers:
    """Things that are found on the host at a start; everything that is given back leaves its set."""

    def __init__(self, held: set[str]) -> None:
        self._held = held
        self.there: dict[str, set[str]] = {"bundle": set(), "staging": set(), "shm": set(), "directory": set()}
        self.cleared: list[str] = []
        self.ended: list[str] = []

    def bundles(self) -> set[str]:
        return set(self.there["bundle"])

    def stagings(self) -> set[str]:
        return set(self.there["staging"])

    def shms(self) -> set[str]:
        return set(self.there["shm"])

    def directories(self) -> set[str]:
        return set(self.there["directory"])

    def held(self) -> set[str]:
        """Of containers that this test's engine has had running, besides what is `there`."""
        return {name.split()[-1] for name in self._held}.union(*self.there.values())

    def end_starts(self, container_ids: Collection[str]) -> None:
        self.ended += container_ids

    def clear_cgroup(self, container_id: str) -> None:
        self.cleared.append(container_id)

    def discard_bundle(self, container_id: str) -> None:
        self.there["bundle"].discard(container_id)

    def unstage(self, container_id: str) -> None:
        self.there["staging"].discard(container_id)

    def release_shm(self, container_id: str) -> None:
        self.there["shm"].discard(container_id)

    def discard(self, container_id: str) -> None:
        self.there["directory"].discard(container_id)


class FakeHost:
    """All the doubles of one engine, with one memory of what is held."""

    def __init__(self, directory: Path) -> None:
        self.held: set[str] = set()
        self.paths = Paths(Config(data_root=directory / "data", exec_root=directory / "run"))
        self.processes = FakeProcesses()
        self.assembly = FakeAssembly(self.held, self.paths)
        self.monitor = FakeMonitor(self.held, self.processes)
        self.exec_monitor = FakeExecMonitor(self.processes)
        self.runtimes = FakeRuntimes()
        self.networks = FakeNetworks(self.held)
        self.volumes = FakeVolumes(self.held)
        self.layers = FakeLayers()
        self.leftovers = FakeLeftovers(self.held)
        self.drivers = Drivers(
            assembly=self.assembly,
            monitor=self.monitor,
            exec_monitor=self.exec_monitor,
            runtimes=self.runtimes,
            leftovers=self.leftovers,
            networks=self.networks,
            volumes=self.volumes,
            layers=self.layers,
        )

    def end(self, instance: Instance, code: int | None) -> None:
        """Its process ends, and its monitor after it; None for a monitor that was killed and told no code."""
        if code is not None:
            self.monitor.exits[instance.id] = code
        record = instance.record
        for pid in (record.state.pid, record.monitor_pid):
            if (found := self.processes.running.pop(pid, None)) is not None:
                found.end()
