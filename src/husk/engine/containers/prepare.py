"""What must lie on the host before the runtime is called? Mount, files and bundle: blocking work, run in a thread."""

import contextlib
import os
from pathlib import Path

from husk.engine.containers import netfiles
from husk.engine.containers.joining import Finder, join
from husk.engine.containers.mounts import needs_staging
from husk.engine.containers.places import Places
from husk.engine.containers.plan import Extras, Place, block_paths, plan
from husk.engine.containers.validate_limits import device_rule
from husk.engine.containers.working_dir import make_working_dir
from husk.engine.host import Host
from husk.engine.model.container import Container, MountPoint
from husk.engine.model.container_config import HostConfig
from husk.engine.networks import links
from husk.engine.networks.connector import Connected
from husk.errors import InvalidParameter, SystemFault
from husk.kernel import cgroup_parents, rooted
from husk.kernel.mount import shared_of
from husk.kernel.trees import discard_tree
from husk.runtime.devices import block_device_numbers, from_host, host_devices
from husk.runtime.spec import ContainerSpec, Device, DeviceRule, oci_spec, resolve_user

_FLAGS = {"ro": os.ST_RDONLY, "nosuid": os.ST_NOSUID, "nodev": os.ST_NODEV, "noexec": os.ST_NOEXEC}


def prepare(
    record: Container,
    places: Places,
    host: Host,
    lower: list[str],
    network: Connected,
    annotations: dict[str, str],
    find: Finder,
) -> None:
    """Mount the root, write hosts, hostname and resolv.conf, write the bundle. `release` undoes all of it."""
    place = places.place(record.id)
    root = places.root(record.id)
    root.create()
    root.mount(lower)
    user = resolve_user(
        record.config.user,
        rooted.read_text(place.rootfs, "/etc/passwd"),
        rooted.read_text(place.rootfs, "/etc/group"),
        record.host_config.group_add or [],
    )
    place = netfiles.write(record, places, network)
    _check_sources(record)
    make_working_dir(place.rootfs, record.config.working_dir or "/")
    joined = join(record, places, find)
    devices, rules = wanted_devices(record.host_config)
    extras = Extras(
        devices=devices,
        annotations=annotations,
        source_flags=_source_flags(record, place),
        device_rules=rules,
        block_devices=block_device_numbers(block_paths(record.host_config, host.limits.block_weight)),
        joined=joined.namespaces,
        shm=joined.shm,
        environment=tuple(links.environment(network.links)),
    )
    spec, _ = plan(record, place, user, host, extras)
    _make_cgroup_parents(record, spec)
    bundle = places.bundle(record)
    bundle.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    bundle.write_config(oci_spec(spec, host.cgroup_v2))
    if record.host_config.log_config.type != "none":
        places.log(record.id).touch(mode=0o640)


def wanted_devices(host_config: HostConfig) -> tuple[tuple[Device, ...], tuple[DeviceRule, ...]]:
    """The nodes of the host that the container gets, and what it may do with them."""
    for request in host_config.device_requests or ():
        words = " ".join(f"[{' '.join(group)}]" for group in request.capabilities or ())
        raise InvalidParameter(f'could not select device driver "{request.driver}" with capabilities: [{words}]')
    devices = {device.path: device for device in (host_devices() if host_config.privileged else ())}
    rules = []
    for mapping in host_config.devices or ():
        found, allowed = from_host(mapping.path_on_host, mapping.path_in_container, mapping.cgroup_permissions or "rwm")
        devices.update((device.path, device) for device in found)
        rules += allowed
    rules += [DeviceRule(True, *device_rule(rule)) for rule in host_config.device_cgroup_rules or ()]
    return tuple(devices.values()), tuple(rules)


def _make_cgroup_parents(record: Container, spec: ContainerSpec) -> None:
    if record.host_config.cgroup_parent:
        cgroup_parents.make(spec.cgroup_path)
    if runtime := spec.resources.cpu_realtime_runtime:
        cgroup_parents.grant_realtime(spec.cgroup_path, runtime, spec.resources.cpu_realtime_period or 0)


def discard_bundle(places: Places, container_id: str) -> None:
    discard_tree(places.bundle_directory(container_id))


def _check_sources(record: Container) -> None:
    """`-v` makes a missing source directory, `--mount` refuses it unless it is told to make it."""
    for point in record.mounts:
        if point.type != "bind":
            continue
        if not os.path.lexists(point.source):
            if not point.makes_source:
                raise InvalidParameter(
                    f'invalid mount config for type "bind": bind source path does not exist: {point.source}'
                )
            _make_source(point.source)
        _check_propagation(point)


def _source_flags(record: Container, place: Place) -> dict[str, tuple[str, ...]]:
    """How the host has mounted what the container is going to have."""
    flags = {}
    for number, point in enumerate(record.mounts):
        if point.type != "tmpfs":
            source = place.staging / str(number) if needs_staging(point) else point.source
            # What is wrong with a source, a link to nowhere perhaps, the runtime says best.
            with contextlib.suppress(OSError):
                present = os.statvfs(source).f_flag
                words = [] if os.path.isdir(source) else ["file"]
                flags[point.destination] = (*words, *(word for word, flag in _FLAGS.items() if present & flag))
    return flags


def _make_source(path: str) -> None:
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SystemFault(f"error while creating mount source path '{path}': mkdir {path}: {reason}") from error


def _check_propagation(point: MountPoint) -> None:
    wanted = point.propagation.removeprefix("r")
    if wanted not in ("shared", "slave"):
        return
    place, tags = shared_of(point.source)
    if wanted == "shared" and "shared" not in tags:
        raise SystemFault(f"path {point.source} is mounted on {place} but it is not a shared mount")
    if not tags & {"shared", "master"}:
        raise SystemFault(f"path {point.source} is mounted on {place} but it is not a shared or slave mount")
