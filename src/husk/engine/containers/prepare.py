"""What must lie on the host before the runtime is called? Mount, files and bundle: blocking work, run in a thread."""

import os
import shutil
from pathlib import Path

from husk.engine.containers import files
from husk.engine.containers.model import Container
from husk.engine.containers.places import Places
from husk.engine.containers.plan import Extras, plan
from husk.engine.host import Host
from husk.errors import InvalidParameter
from husk.kernel import rooted
from husk.runtime.devices import host_devices
from husk.runtime.spec import oci_spec, resolve_user


def prepare(
    record: Container, places: Places, host: Host, lower: list[str], gateway: str, annotations: dict[str, str]
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
    _write_network_files(record, places, gateway)
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


def _write_network_files(record: Container, places: Places, gateway: str) -> None:
    place = places.place(record.id)
    config, host_config = record.config, record.host_config
    on_host = host_config.network_mode == "host"
    address = next((e.ip_address for e in record.endpoints.values() if e.ip_address), "")
    names = [config.hostname]
    if config.domainname:
        names.insert(0, f"{config.hostname}.{config.domainname}")
    extra = host_config.extra_hosts or []
    if on_host:
        text = files.hosts("", [], extra, "127.0.0.1", base=_read("/etc/hosts"))
    else:
        text = files.hosts(address, names, extra, gateway)
    place.hosts.write_text(text)
    place.hostname.write_text(config.hostname + "\n")
    place.resolv_conf.write_text(
        files.resolv_conf(
            _read("/etc/resolv.conf"),
            host_config.dns,
            host_config.dns_search,
            host_config.dns_options,
            own_network=not on_host,
        )
    )


def _check_sources(record: Container) -> None:
    """`-v` makes a missing source directory, `--mount` refuses it."""
    makes_source = {bind.split(":")[1] for bind in record.host_config.binds or []}
    for point in record.mounts:
        if os.path.lexists(point.source):
            continue
        if point.destination not in makes_source:
            raise InvalidParameter(
                f'invalid mount config for type "bind": bind source path does not exist: {point.source}'
            )
        Path(point.source).mkdir(parents=True, exist_ok=True)


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
