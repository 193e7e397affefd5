"""Give a container its process: network, mounts, files, bundle, monitor, in the order in which they need each other.

What fails half-way is given back by `release`, which the caller sees to.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from husk.engine.containers import states
from husk.engine.containers.config.limits import device_rule
from husk.engine.containers.config.spec import Extras, block_paths, plan, seccomp_profile
from husk.engine.containers.connect import write_files
from husk.engine.containers.drivers import Assembly, Drivers, Supervised, Supervisor, bundle_of
from husk.engine.containers.index import Companion, ContainerIndex, Instance
from husk.engine.containers.mounts import Stager
from husk.engine.host import EngineHost
from husk.engine.model.container import Container, MountPoint
from husk.engine.model.container_config import DeviceMapping, HostConfig
from husk.engine.networks import links
from husk.engine.networks.connector import Connected
from husk.errors import Conflict, HuskError, InvalidParameter, NotFound
from husk.runtime.assembly import cgroup, sources
from husk.runtime.oci import OCIRuntime
from husk.runtime.seccomp.precompiled import CompiledFilters
from husk.runtime.spec.devices import block_device_numbers, from_host, host_devices
from husk.runtime.spec.document import Device, DeviceRule, oci_spec
from husk.runtime.spec.users import resolve_user
from husk.runtime.supervise.conmon import Apart, Bring, Copies

Finder = Callable[[str], Container]
Lower = Callable[[Container], Sequence[str]]
_PREFIX = "container:"


class Starter:
    def __init__(
        self,
        *,
        index: ContainerIndex,
        drivers: Drivers,
        host: EngineHost,
        stager: Stager,
        lower: Lower,
    ) -> None:
        """`lower` tells what a container's own changes lie on, topmost first."""
        self._index = index
        self._assembly = drivers.assembly
        self._networks = drivers.networks
        self._monitor = drivers.monitor
        self._keeper = drivers.keeper
        self._runtimes = drivers.runtimes
        self._host = host
        self._stager = stager
        self._lower = lower
        self._filters = CompiledFilters()

    async def create(self, instance: Instance, companions: Iterable[Companion], awaited: bool) -> None:
        """Make the container's process and let it run; its draft then has the pids. `awaited` says that somebody of
        this process waits for its end, and that it runs for nobody else."""
        self._monitor.expect()
        instance.life = states.starting(instance.life)
        runtime = self._runtimes.get(instance.record.host_config.runtime)
        for companion in companions:
            await companion.starting(instance)
        network = await self._networks.connect(instance.draft)
        record = instance.draft.record
        annotations = await self._filters.annotations(seccomp_profile(record.host_config, self._host))
        await self._stager.mount(record)
        needs = self._needs(record) if runtime.known_files and self._monitor.makes_apart else None
        binds = needs.binds if needs is not None else {}
        copies = needs.copies() if needs is not None else None
        bundle = bundle_of(record, self._assembly.paths)
        try:
            extras = Extras(annotations=annotations, filtered=bool(annotations) and runtime.takes_filters)
            named, numbers = await self._devices(record.host_config)
            extras = replace(extras, source_flags=await self._sources(record), block_devices=numbers)
            otherwise = await asyncio.to_thread(self._prepare, record, network, extras, binds, named)
            if copies is not None:
                await self._bring(binds, copies)
            apart = Apart(copies, otherwise) if copies is not None else None
            supervised = await self._supervisor(instance, awaited).create(bundle, runtime, apart=apart)
        finally:
            if copies is not None:
                copies.close()
        await self._let_run(instance, supervised, runtime)

    async def _let_run(self, instance: Instance, supervised: Supervised, runtime: OCIRuntime) -> None:
        """The container is made: take note of it, connect those who listen, and let its process begin."""
        record = instance.draft.record
        instance.draft.change(
            state=replace(record.state, pid=supervised.pid),
            monitor_pid=supervised.monitor_pid,
            monitor_started=supervised.monitor_started,
        )
        instance.life = states.begun(instance.life, supervised)
        config = record.host_config
        own = ([], []) if config.privileged else (config.masked_paths or [], config.readonly_paths or [])
        console = await supervised.attach(accepts=False) if instance.switchboard else None
        if console is not None:
            instance.switchboard.connect(console)
        await asyncio.to_thread(self._assembly.secure_procfs, supervised.pid, *own)
        if console is not None:
            await console.accepted()  # it had the time meanwhile
        await runtime.start(record.id)

    def _supervisor(self, instance: Instance, awaited: bool) -> Supervisor:
        """Choose the keeper for a container that is awaited by somebody who listens, if nobody reads its log and its
        processes end with the first of them: it needs no monitor."""
        if self._keeper is None or not (awaited and instance.switchboard):
            return self._monitor
        record, config = instance.record, instance.record.host_config
        apart = not record.config.tty and config.log_config.type == "none" and not config.pid_mode
        return self._keeper if apart and config.auto_remove else self._monitor

    def _needs(self, record: Container) -> "MountNeeds | None":
        """Return the container's needs of all that is mounted on the host; None when they cannot be told."""
        paths, ipc_mode = self._assembly.paths, record.host_config.ipc_mode
        own = [str(self._assembly.root(record.id).merged)]
        if record.sandbox_path and not record.sandbox_path.startswith("/proc/"):
            own.append(record.sandbox_path)
        if ipc_mode == "shareable":
            own.append(str(paths.shm(record.id)))
        elif ipc_mode not in ("private", "none"):
            return None
        binds = {}
        for number, point in enumerate(record.mounts):
            if point.type == "tmpfs":
                continue
            if point.propagation not in ("", "private", "rprivate"):
                return None  # what the host mounts later is to be seen, or the other way round
            if point.staged:
                own.append(str(paths.staging(record.id) / str(number)))
            elif point.source.startswith(f"{paths.volumes}/"):
                # Its directory is on the way to our own, whatever is mounted in it; those of the host may be anywhere.
                own.append(point.source)
            elif any(ours.is_relative_to(point.source) for ours in (paths.data_root, paths.run)):
                return None  # it has the mounts of all containers in it
            else:
                binds[point.destination] = Bring(point.source, f"{paths.bundle(record.id)}/bound-{number}")
        return MountNeeds(list(dict.fromkeys(own)), binds)

    async def _sources(self, record: Container) -> dict[str, tuple[str, ...]]:
        """Return the flags with which the host has mounted the sources of the container's mounts, by destination.
        Sources that the client wants made are there then."""
        paths, flags = self._assembly.paths, {}
        for number, point in enumerate(record.mounts):
            if point.type != "tmpfs":
                source = str(paths.staging(record.id) / str(number)) if point.staged else point.source
                found = await self._assembly.touch(source, partial(_source, point, source))
                if found is not None:
                    flags[point.destination] = found
        return flags

    async def _devices(self, host_config: HostConfig) -> "tuple[list[Found], dict[str, tuple[int, int]]]":
        """Look at the devices that a client has named, and at those that limits of block I/O are for, whose numbers are
        told by path. Its paths may lead to file systems that do not answer."""
        touch = self._assembly.touch
        named = [
            await touch(mapping.path_on_host, partial(named_devices, mapping)) for mapping in host_config.devices or ()
        ]
        numbers: dict[str, tuple[int, int]] = {}
        for path in block_paths(host_config, self._host.limits.block_weight):
            numbers |= await touch(path, partial(block_device_numbers, [path]))
        return named, numbers

    async def _bring(self, binds: dict[str, Bring], copies: Copies) -> None:
        """Make the copies, and what those of the host's directories are mounted on."""
        if not binds:
            await asyncio.to_thread(copies.make)
            return

        def make() -> None:
            self._assembly.make_places(binds.values())
            copies.make()

        # They have all answered just now.
        await self._assembly.touch(next(iter(binds.values())).source, make)

    def _prepare(
        self,
        record: Container,
        network: Connected,
        extras: Extras,
        binds: dict[str, Bring],
        named: "Sequence[Found]",
    ) -> Callable[[], None] | None:
        """Mount the root, write hosts, hostname and resolv.conf, write the bundle. All of it blocks.

        `binds` are sources that are to be brought to places of the bundle; what is returned then writes a bundle that
        names them where the host has them. `named` are the devices that the client has named.
        """
        assembly, host = self._assembly, self._host
        root = assembly.root(record.id)
        root.create()
        root.mount(self._lower(record), volatile=record.host_config.auto_remove)
        user = resolve_user(
            record.config.user,
            root.text_of("/etc/passwd"),
            root.text_of("/etc/group"),
            record.host_config.group_add or [],
        )
        paths = write_files(record, assembly.paths, network)
        root.make_directory(record.config.working_dir or "/")
        joined = join(record, assembly, lambda reference: self._index.find(reference).record)
        devices, rules = wanted_devices(record.host_config, named)
        extras = replace(
            extras,
            devices=devices,
            device_rules=rules,
            places={destination: bring.target for destination, bring in binds.items()},
            joined=joined.namespaces,
            shm=joined.shm,
            environment=tuple(links.environment(network.links)),
        )
        spec, _ = plan(record, paths, user, host, extras)
        limits = spec.resources
        cgroup.make_parents(
            spec.cgroup_path,
            named=bool(record.host_config.cgroup_parent),
            realtime=limits.cpu_realtime_runtime,
            period=limits.cpu_realtime_period,
        )
        bundle = bundle_of(record, assembly.paths)
        assembly.write_bundle(bundle, oci_spec(spec, host.cgroup_v2))
        if not binds:
            return None

        def otherwise() -> None:
            spec, _ = plan(record, paths, user, host, replace(extras, places={}))
            assembly.write_bundle(bundle, oci_spec(spec, host.cgroup_v2))

        return otherwise


def _source(point: MountPoint, source: str) -> tuple[str, ...] | None:
    """Make the source of a mount ready; the flags it is mounted with on the host, None if they are unknown. Blocks."""
    if point.type == "bind":
        sources.make_ready(source, makes=point.makes_source, propagation=point.propagation)
    try:
        return sources.flags(source)
    except OSError:
        return None  # what is wrong with a source, a link to nowhere perhaps, the runtime says best


class MountNeeds(Struct, frozen=True):
    """The mount points of the daemon's that a container is made of, and what it binds of the host, by destination."""

    mounts: list[str]
    binds: dict[str, Bring]

    def copies(self) -> Copies:
        return Copies([*(Bring(point, point) for point in self.mounts), *self.binds.values()])


Found = tuple[Sequence[Device], Sequence[DeviceRule]]


def named_devices(mapping: DeviceMapping) -> Found:
    """Find what a client names: nodes, and what may be done with them. Blocks for as long as the file system does."""
    return from_host(mapping.path_on_host, mapping.path_in_container, mapping.cgroup_permissions or "rwm")


def wanted_devices(
    host_config: HostConfig, named: Iterable[Found] = ()
) -> tuple[tuple[Device, ...], tuple[DeviceRule, ...]]:
    """The nodes of the host that the container gets, with those that were found by name, and what it may do with them.
    Blocks."""
    for request in host_config.device_requests or ():
        words = " ".join(f"[{' '.join(group)}]" for group in request.capabilities or ())
        raise InvalidParameter(f'could not select device driver "{request.driver}" with capabilities: [{words}]')
    devices = {device.path: device for device in (host_devices() if host_config.privileged else ())}
    rules: list[DeviceRule] = []
    for found, allowed in named:
        devices.update((device.path, device) for device in found)
        rules += allowed
    rules += [DeviceRule(True, *device_rule(rule)) for rule in host_config.device_cgroup_rules or ()]
    return tuple(devices.values()), tuple(rules)


class JoinedNamespaces(Struct, frozen=True):
    """Paths of the namespaces to join by OCI type, and the host's directory that becomes /dev/shm, if any."""

    namespaces: dict[str, str]
    shm: str


def resolve_joined(host_config: HostConfig, find: Finder) -> HostConfig:
    """Name the containers whose namespaces are joined by their ids: their names may change. Raises NotFound."""
    modes = {field: getattr(host_config, field) for field in ("pid_mode", "ipc_mode")}
    found = {
        field: _PREFIX + find(mode.removeprefix(_PREFIX)).id
        for field, mode in modes.items()
        if mode.startswith(_PREFIX)
    }
    return replace(host_config, **found) if found else host_config


def join(record: Container, assembly: Assembly, find: Finder) -> JoinedNamespaces:
    """Find all that a starting container shares; the others must run. Makes its own /dev/shm if it is to be shared."""
    namespaces = {}
    shm = ""
    if (donor := _donor("PID", record.host_config.pid_mode, find)) is not None:
        namespaces["pid"] = f"/proc/{donor.state.pid}/ns/pid"
    mode = record.host_config.ipc_mode
    if (donor := _donor("IPC", mode, find)) is not None:
        namespaces["ipc"] = f"/proc/{donor.state.pid}/ns/ipc"
        if donor.host_config.ipc_mode == "host":
            shm = "/dev/shm"
        elif donor.host_config.ipc_mode != "shareable":
            raise InvalidParameter(
                f"failed to join IPC namespace: container {donor.id}: non-shareable IPC "
                "(hint: use IpcMode:shareable for the donor container)"
            )
        else:
            shm = str(assembly.paths.shm(donor.id))
    elif mode == "shareable":
        shm = str(assembly.make_shm(record.id, record.host_config.shm_size))
    return JoinedNamespaces(namespaces, shm)


def _donor(kind: str, mode: str, find: Finder) -> Container | None:
    """The container whose namespace is joined, which must run; None where none is."""
    if not mode.startswith(_PREFIX):
        return None
    try:
        donor = find(mode.removeprefix(_PREFIX))
    except NotFound as error:
        # Not as "not found": that would be said of the container that is to start.
        raise InvalidParameter(f"failed to join {kind} namespace: {error.message}") from None
    if donor.state.status not in ("running", "paused") or not donor.state.pid:
        # Of processes dockerd says that as a fault of its own (500).
        refusal = HuskError if kind == "PID" else Conflict
        raise refusal(f"failed to join {kind} namespace: container {donor.id} is not running")
    return donor
