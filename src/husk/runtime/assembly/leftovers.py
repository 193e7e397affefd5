"""Leftovers on the host that belong to no container any more: the rest of a start or a removal that was cut off."""

import logging
import os
import posixpath
import stat
from collections.abc import Callable, Collection
from pathlib import Path

import msgspec

from husk.kernel.mount import mounts_below, unmount
from husk.kernel.process import kill_given
from husk.kernel.trees import discard_tree
from husk.runtime.assembly import cgroup, shm, staging
from husk.runtime.assembly.paths import Paths
from husk.text.documents import MalformedDocument, decode

log = logging.getLogger(__name__)

PutAside = Callable[[Path, str], object]


class _Linux(msgspec.Struct):
    cgroups_path: str = msgspec.field(default="", name="cgroupsPath")


class _Config(msgspec.Struct):
    """The part of a bundle's configuration that is read here."""

    linux: _Linux = msgspec.field(default_factory=_Linux)


def discard_former(data_root: Path) -> None:
    """Delete what former versions have kept in a data root: a copy of conmon, which its monitors go on to run."""
    discard_tree(data_root / "monitor")


class Leftovers:
    """The ids of containers and execs that have something on the host; the caller knows which of them have a record."""

    def __init__(self, paths: Paths, put_aside: PutAside) -> None:
        """`put_aside` moves out of the way what cannot be deleted, or every start would find it again."""
        self._paths = paths
        self._put_aside = put_aside

    def bundles(self) -> set[str]:
        return _names(self._paths.run)

    def stagings(self) -> set[str]:
        return _names(self._paths.stagings)

    def shms(self) -> set[str]:
        return _names(self._paths.shms)

    def directories(self) -> set[str]:
        return _names(self._paths.data)

    def execs(self) -> set[str]:
        return _names(self._paths.execs)

    def held(self) -> set[str]:
        """Those who have anything on the host that belongs to a process: all looked at together."""
        data = os.path.realpath(self._paths.data) + "/"
        mounted = {point.removeprefix(data).partition("/")[0] for point in mounts_below(data)}
        return mounted | self.bundles() | self.stagings() | self.shms()

    def end_starts(self, container_ids: Collection[str]) -> None:
        """Kill the runtimes and monitors that still make these containers, and wait for their ends. Blocks."""
        kill_given([str(self._paths.bundle(container_id)) for container_id in container_ids])

    def clear_cgroup(self, container_id: str) -> None:
        """Kill what is left in the control group that a bundle names, and remove that. A runtime that was cut off may
        not have got as far as to know of it."""
        try:
            config = _plain_file(self._paths.bundle(container_id) / "config.json")
            path = decode(config, _Config).linux.cgroups_path
        except (OSError, MalformedDocument) as error:
            log.debug("the bundle of %s names no control group: %s", container_id, error)
            return
        # Never what others may have something in.
        if posixpath.basename(path) == container_id:
            cgroup.clear(path, named=path != self._paths.of(container_id).cgroup)

    def discard_bundle(self, container_id: str) -> None:
        discard_tree(self._paths.bundle(container_id))

    def unstage(self, container_id: str) -> None:
        staging.unstage(self._paths.staging(container_id))

    def release_shm(self, container_id: str) -> None:
        shm.release(self._paths.shm(container_id))

    def discard(self, container_id: str) -> None:
        """Delete what a container has written, and whatever is still mounted there."""
        directory = self._paths.directory(container_id)
        try:
            for target in mounts_below(str(directory)):
                unmount(target, detach=True)
        except OSError as error:
            log.error("cannot unmount what is left in %s: %s", directory, error)
            return
        if not discard_tree(directory):
            self._put_aside(directory, "it belongs to no container and cannot be deleted")


def _names(directory: Path) -> set[str]:
    try:
        return set(os.listdir(directory))
    except FileNotFoundError:
        return set()


def _plain_file(path: Path) -> bytes:
    """Read a file; empty if something else has its name: a pipe, at which a runtime may have waited."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK | os.O_CLOEXEC)) as file:
        return file.read() if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
