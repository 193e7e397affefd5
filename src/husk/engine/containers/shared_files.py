"""Files of networks that a container has: its own, or those of the one whose network it is in. Pure."""

from collections.abc import Callable

from msgspec.structs import replace

from husk.engine.model.container import Container
from husk.errors import NotFound
from husk.runtime.assembly.paths import ContainerPaths, Paths

_GUEST = "container:"


def files_of(record: Container, paths: Paths, find: Callable[[str], Container]) -> ContainerPaths:
    """Return the paths of a container's things, with /etc/hosts, /etc/hostname and /etc/resolv.conf of whoever has the
    network; its own paths of them where that one has been removed."""
    own, host, passed = paths.of(record.id), record, set[str]()
    while host.host_config.network_mode.startswith(_GUEST) and host.id not in passed:
        passed.add(host.id)
        try:
            host = find(host.host_config.network_mode.removeprefix(_GUEST))
        except NotFound:
            return own
    if host is record:
        return own
    other = paths.of(host.id)
    return replace(own, hosts=other.hosts, hostname=other.hostname, resolv_conf=other.resolv_conf)
