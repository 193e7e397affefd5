"""What must lie on the host before the runtime is called? Mount, files and bundle: blocking work, run in a thread."""

import os
import shutil
from pathlib import Path

from husk.engine.containers import netfiles
from husk.engine.containers.model import Container, MountPoint
from husk.engine.containers.places import Places
from husk.engine.containers.plan import Extras, plan
from husk.engine.host import Host
from husk.engine.networks.connector import Connected
from husk.errors import InvalidParameter, SystemFault
from husk.kernel import rooted
from husk.kernel.mount import shared_of
from husk.runtime.devices import host_devices
from husk.runtime.spec import oci_spec, resolve_user


def prepare(
    record: Container, places: Places, host: Host, lower: list[str], network: Connected, annotations: dict[str, str]
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
    rooted.make_directories(place.rootfs, record.config.working_dir or "/")
    devices = host_devices() if record.host_config.privileged else ()
    spec, _ = plan(record, place, user, host, Extras(devices, annotations))
    bundle = places.bundle(record)
    bundle.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    bundle.write_config(oci_spec(spec, host.cgroup_v2))
    if record.host_config.log_config.type != "none":
        places.log(record.id).touch(mode=0o640)


def discard_bundle(places: Places, container_id: str) -> None:
    shutil.rmtree(places.bundle_directory(container_id), ignore_errors=True)


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
