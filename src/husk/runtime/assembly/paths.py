"""The paths of a container's things on the host; every path of a container comes from here. Pure."""

import functools
import posixpath
from pathlib import Path

import msgspec

from husk.config import Config

# Containers, of those that were asked about last.
_REMEMBERED = 100


class ContainerPaths(msgspec.Struct, frozen=True):
    """The paths of one container: of its files and directories on the host, and of its control group."""

    rootfs: Path
    hosts: Path
    hostname: Path
    resolv_conf: Path
    cgroup: str
    staging: Path = Path()
    upper: Path = Path()
    work: Path = Path()


class Paths:
    """`data-root/containers/<id>` outlives the process, `exec-root/containers/<id>` exists while there is one."""

    def __init__(self, config: Config) -> None:
        self.data_root = config.data_root
        self.data = config.data_root / "containers"
        self.volumes = config.data_root / "volumes"
        self.run = config.exec_root / "containers"
        self.execs = config.exec_root / "exec"
        self.stagings = config.exec_root / "mounts"
        self.shms = config.exec_root / "shm"
        self.mount_points_layer = config.data_root / "mount-points"
        self.other_mount_points = config.data_root / "mount-points.d"
        self.step_mount_points = config.data_root / "step-mount-points"
        self._cgroup_parent = config.cgroup_parent
        # Every step of a container asks, and paths take longer to put together than to use.
        self.of = functools.lru_cache(_REMEMBERED)(self._of)
        self.bundle = functools.lru_cache(_REMEMBERED)(self._bundle)

    def _of(self, container_id: str) -> ContainerPaths:
        directory = self.directory(container_id)
        return ContainerPaths(
            rootfs=directory / "rootfs",
            hosts=directory / "hosts",
            hostname=directory / "hostname",
            resolv_conf=directory / "resolv.conf",
            cgroup=self.cgroup(container_id, ""),
            staging=self.staging(container_id),
            upper=directory / "diff",
            work=directory / "work",
        )

    def directory(self, container_id: str) -> Path:
        return self.data / container_id

    def cgroup(self, container_id: str, parent: str) -> str:
        """Path of the container's control groups, below each tree of them; below `parent` where a client names one."""
        return cgroup_below(parent, container_id) if parent else f"{self._cgroup_parent}/{container_id}"

    def shm(self, container_id: str) -> Path:
        """Return the directory where the /dev/shm that a container shares with others is mounted."""
        return self.shms / container_id

    def staging(self, container_id: str) -> Path:
        """Return the directory below which `staging` mounts things for the container."""
        return self.stagings / container_id

    def log(self, container_id: str) -> Path:
        return self.data / container_id / "container.log"

    def _bundle(self, container_id: str) -> Path:
        return self.run / container_id

    def exec_bundle(self, exec_id: str) -> Path:
        return self.execs / exec_id


def cgroup_below(parent: str, container_id: str) -> str:
    # A parent cannot lead out of the tree: what is above the root is the root.
    return posixpath.normpath(f"/{parent}/{container_id}").replace("//", "/")
