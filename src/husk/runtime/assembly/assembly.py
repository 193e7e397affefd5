"""The host side of all containers of one engine, by their ids. What is made here is released here, safe to repeat."""

import contextlib
import functools
import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from husk.kernel import cgroups
from husk.kernel.lean_mounts import Bring
from husk.kernel.trees import discard_tree
from husk.runtime.assembly import cgroup, procfs, shm, staging
from husk.runtime.assembly.foreign_paths import ForeignPaths
from husk.runtime.assembly.leftovers import PutAside
from husk.runtime.assembly.mount_points import MountPoints
from husk.runtime.assembly.paths import Paths
from husk.runtime.assembly.root import ContainerRoot
from husk.runtime.assembly.staging import StagedPart
from husk.runtime.supervise.conmon import Bundle

_REMEMBERED = 100
# So many bytes of a log are little.
_LITTLE = 1 << 20


class Assembly:
    """All methods block, though not for long, except `discard`, which deletes whole trees, and `touch`."""

    def __init__(self, paths: Paths) -> None:
        self.paths = paths
        self.touch = ForeignPaths().touch
        self.mount_points = MountPoints(paths.mount_points_layer, paths.other_mount_points)
        # Every step of a container asks.
        self.root = functools.lru_cache(_REMEMBERED)(self._root)

    def _root(self, container_id: str) -> ContainerRoot:
        return ContainerRoot(self.paths.directory(container_id))

    def make_mount_points(self, put_aside: PutAside) -> None:
        """Make the layer that most containers have between their image and their own changes."""
        try:
            self.mount_points.make()
        except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
            put_aside(self.paths.mount_points_layer, f"it is not as we made it: {error}")
            self.mount_points.make()

    # --- mounts beside the root

    def stage(self, container_id: str, parts: Mapping[int, StagedPart]) -> None:
        staging.stage(self.paths.staging(container_id), parts)

    def unstage(self, container_id: str) -> None:
        staging.unstage(self.paths.staging(container_id))

    def make_shm(self, container_id: str, size: int) -> Path:
        """Mount a container's /dev/shm for itself and for others, if it is not mounted yet; return its directory."""

        directory = self.paths.shm(container_id)
        shm.make(directory, size)
        return directory

    def release_shm(self, container_id: str) -> None:
        shm.release(self.paths.shm(container_id))

    # --- bundle

    def write_bundle(self, bundle: Bundle, config: dict[str, object]) -> None:
        """Write what the runtime reads; the log exists from now on."""
        bundle.write_config(config)
        if bundle.log_path is not None:
            bundle.log_path.touch(mode=0o640)

    def make_places(self, binds: Iterable[Bring]) -> None:
        """Make what the sources of binds are mounted on, for the moment in which the runtime makes the container."""
        for bring in binds:
            if os.path.isdir(bring.source):
                os.makedirs(bring.target, exist_ok=True)
            else:
                Path(bring.target).touch()

    def has_bundle(self, container_id: str) -> bool:
        return os.path.exists(self.paths.bundle(container_id))

    def discard_bundle(self, container_id: str) -> None:
        discard_tree(self.paths.bundle(container_id))

    # --- process

    def secure_procfs(self, pid: int, masked: Collection[str], readonly: Collection[str]) -> None:
        procfs.secure(pid, masked, readonly)

    def oom_killed(self, path: str) -> bool:
        """Return True if the kernel has killed a process of this control group for lack of memory."""
        return cgroup.oom_killed(path)

    def thaw(self, path: str) -> None:
        cgroups.thaw(path)

    def clear_cgroup(self, path: str, *, named: bool) -> None:
        cgroup.clear(path, named=named)

    # --- what is left

    def holds_little(self, container_id: str) -> bool:
        """Return True if a container has written nothing into its root, and next to nothing into its log: then nobody
        waits for the room. False where that cannot be seen."""
        try:
            return os.stat(self.paths.log(container_id)).st_size <= _LITTLE and self.root(container_id).unchanged()
        except OSError:
            return False

    def discard_little(self, container_id: str) -> bool:
        """The same for one that has written nothing into its root, so that it takes no time. Is it such a one?"""
        try:
            if not self.root(container_id).unchanged():
                return False
        except OSError:
            return False
        self.discard(container_id)
        return True

    def discard(self, container_id: str) -> None:
        """Delete all that a container without a record has written."""
        directory = self.paths.directory(container_id)
        # The directories in others that every container has, of a volatile mount three more: without them nothing has
        # to be moved.
        work = f"{directory}/work/work"
        with contextlib.suppress(OSError):
            os.unlink(f"{work}/incompat/volatile/dirty")
            os.rmdir(f"{work}/incompat/volatile")
            os.rmdir(f"{work}/incompat")
        with contextlib.suppress(OSError):
            os.rmdir(work)
        discard_tree(directory)
