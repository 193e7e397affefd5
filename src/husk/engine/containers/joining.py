"""Whose namespaces and shared memory does a container live in? Its own, the host's, or those of another container.

A container that is `shareable` has its /dev/shm mounted on the host (exec-root/shm/<id>) while it runs, because a mount
that was made inside it could not be given to another one. `release_shm` is the one function that unmounts it.
"""

import contextlib
import os
from collections.abc import Callable, Iterable
from typing import NamedTuple

from husk.engine.containers.places import Places
from husk.engine.model.container import Container
from husk.engine.model.container_config import HostConfig
from husk.errors import Conflict, InvalidParameter, NotFound, SystemFault
from husk.kernel.mount import MS_NODEV, MS_NOEXEC, MS_NOSUID, mount, mounts_below, unmount

Finder = Callable[[str], Container]

_PREFIX = "container:"


class Joined(NamedTuple):
    """Paths of the namespaces to join by OCI type, and the host's directory that becomes /dev/shm, if any."""

    namespaces: dict[str, str]
    shm: str


def resolve(host_config: HostConfig, find: Finder) -> None:
    """Write the ids of the containers that are joined: their names may change. Raises NotFound."""
    for field in ("pid_mode", "ipc_mode"):
        mode = getattr(host_config, field)
        if mode.startswith(_PREFIX):
            setattr(host_config, field, _PREFIX + find(mode.removeprefix(_PREFIX)).id)


def join(record: Container, places: Places, find: Finder) -> Joined:
    """What a container that starts now shares; the others must run. Makes its own /dev/shm if it is to be shared."""
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
            shm = str(places.shm(donor.id))
    elif mode == "shareable":
        shm = _make_shm(record, places)
    return Joined(namespaces, shm)


def release_shm(places: Places, container_id: str) -> None:
    """Safe to call twice, and for a container that never had one. Those who joined keep what they have."""
    directory = places.shm(container_id)
    if directory.exists():
        unmount(str(directory), detach=True)
        with contextlib.suppress(OSError):
            directory.rmdir()


def sweep(places: Places, known: Iterable[str]) -> None:
    """Release what belongs to no container any more."""
    with contextlib.suppress(FileNotFoundError):
        for name in set(os.listdir(places.shms)) - set(known):
            release_shm(places, name)


def _make_shm(record: Container, places: Places) -> str:
    directory = places.shm(record.id)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if str(directory.resolve()) not in mounts_below(str(directory.resolve())):
        try:
            options = f"mode=1777,size={record.host_config.shm_size}"
            mount("shm", str(directory), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options)
        except OSError as error:
            raise SystemFault(f"cannot mount the shared memory of container {record.id}: {error.strerror}") from error
    return str(directory)


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
        raise Conflict(f"failed to join {kind} namespace: container {donor.id} is not running")
    return donor
