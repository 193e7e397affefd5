"""Where do a container's things lie on the host? Every path of a container comes from here."""

import functools
import os
from pathlib import Path

from husk.config import Config
from husk.engine.containers.plan import Place, cgroup_path
from husk.engine.model.container import Container
from husk.runtime.conmon import Bundle
from husk.storage.lost import put_aside
from husk.storage.overlay import ContainerRoot

# Containers, of those that were asked about last.
_REMEMBERED = 100


class Places:
    """`data-root/containers/<id>` outlives the process, `exec-root/containers/<id>` exists while there is one."""

    def __init__(self, config: Config) -> None:
        self.data = config.data_root / "containers"
        self.run = config.exec_root / "containers"
        self.execs = config.exec_root / "exec"
        self.stagings = config.exec_root / "mounts"
        self.shms = config.exec_root / "shm"
        self._cgroup_parent = config.cgroup_parent
        self.mount_points_layer = config.data_root / "mount-points"
        # Every step of a container asks, and paths take longer to put together than to use.
        self.root = functools.lru_cache(_REMEMBERED)(self._root)
        self.place = functools.lru_cache(_REMEMBERED)(self._place)

    def directory(self, container_id: str) -> Path:
        return self.data / container_id

    def _root(self, container_id: str) -> ContainerRoot:
        return ContainerRoot(self.data / container_id)

    def cgroup(self, record: Container) -> str:
        """Path of the container's control groups, below each tree of them."""
        return cgroup_path(record, self.place(record.id).cgroup_path)

    def shm(self, container_id: str) -> Path:
        """Where the /dev/shm that a container shares with others is mounted."""
        return self.shms / container_id

    def staging(self, container_id: str) -> Path:
        """Where `staging` mounts things for the container."""
        return self.stagings / container_id

    def staged(self, container_id: str, number: int) -> Path:
        return self.staging(container_id) / str(number)

    def log(self, container_id: str) -> Path:
        return self.data / container_id / "container.log"

    def bundle_directory(self, container_id: str) -> Path:
        return self.run / container_id

    def bundle(self, record: Container) -> Bundle:
        return Bundle(
            container_id=record.id,
            directory=self.bundle_directory(record.id),
            log_path=None if record.host_config.log_config.type == "none" else self.log(record.id),
            terminal=record.config.tty,
            stdin_open=record.config.open_stdin,
            stdin_once=record.config.stdin_once,
            command=record.path,
        )

    def make_mount_points_layer(self) -> None:
        """The layer between an image and a container's own changes, with what the runtime mounts things on.

        Without it the runtime would make these in the writable layer, and `commit` and `diff` would show them.
        """
        try:
            self._make_mount_points_layer()
        except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
            put_aside(self.mount_points_layer.parent, self.mount_points_layer, f"it is not as we made it: {error}")
            self._make_mount_points_layer()

    def _make_mount_points_layer(self) -> None:
        top = self.mount_points_layer
        for directory in ("dev/pts", "dev/shm", "proc", "sys", "etc"):
            (top / directory).mkdir(parents=True, exist_ok=True)
        for file in ("dev/console", "etc/hosts", "etc/hostname", "etc/resolv.conf", ".dockerenv"):
            (top / file).touch(mode=0o755)
        if not os.path.lexists(top / "etc/mtab"):
            (top / "etc/mtab").symlink_to("/proc/mounts")

    def _place(self, container_id: str) -> Place:
        directory = self.directory(container_id)
        return Place(
            rootfs=self.root(container_id).merged,
            hosts=directory / "hosts",
            hostname=directory / "hostname",
            resolv_conf=directory / "resolv.conf",
            cgroup_path=f"{self._cgroup_parent}/{container_id}",
            staging=self.staging(container_id),
        )
