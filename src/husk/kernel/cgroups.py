"""Control groups of this host: their trees, and how those of a container are watched, emptied and removed.

Three layouts exist. `v2`: one tree at /sys/fs/cgroup. `v1`: one tree per controller below it. `hybrid`: v1 trees plus a
v2 tree at /sys/fs/cgroup/unified that should hold no controllers; where it still holds some, crun 1.8 refuses to work.
A cgroup is named by its path below each tree ("/husk/<id>"), the same in all of them.

All functions are quick but touch the kernel: callers run them in a thread.
"""

import contextlib
import errno
import os
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from husk.errors import SystemFault
from husk.kernel.mount import mount
from husk.kernel.tree_cursor import DIRECTORY, TreeCursor

Mode = Literal["v1", "hybrid", "v2"]

ROOT = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")

# Options of a v1 mount that are not controllers.
_V1_OPTIONS = frozenset({"rw", "ro", "nosuid", "nodev", "noexec", "relatime", "noatime", "xattr", "clone_children"})


class Hierarchy(msgspec.Struct, frozen=True):
    """One mounted tree: its mount point, and the controllers it holds (v2: those that its root offers)."""

    path: Path
    version: Literal[1, 2]
    controllers: frozenset[str]


def parse_mounts(text: str) -> list[Hierarchy]:
    """The trees in the text of /proc/mounts; of a tree that is mounted twice only the first mount."""
    found: list[Hierarchy] = []
    for line in text.splitlines():
        _, target, fstype, options, *_ = line.split(" ")
        if fstype == "cgroup2":
            found.append(Hierarchy(Path(target), 2, frozenset()))
        elif fstype == "cgroup":
            names = (option for option in options.split(",") if option not in _V1_OPTIONS)
            controllers = frozenset(name for name in names if "=" not in name or name.startswith("name="))
            if not any(other.controllers == controllers and other.version == 1 for other in found):
                found.append(Hierarchy(Path(target), 1, controllers))
    return found


def hierarchies() -> list[Hierarchy]:
    """The mounted trees of this host."""
    found = []
    for tree in parse_mounts(Path("/proc/mounts").read_text()):
        if not tree.path.is_relative_to(ROOT):
            continue
        if tree.version == 2:
            offered = (tree.path / "cgroup.controllers").read_text().split()
            tree = Hierarchy(tree.path, 2, frozenset(offered))
        found.append(tree)
    return found


def mode_of(trees: Iterable[Hierarchy]) -> Mode:
    versions = {tree.version: tree.path for tree in trees}
    if 2 not in versions:
        return "v1"
    return "v2" if versions[2] == ROOT else "hybrid"


def detect() -> Mode:
    return mode_of(hierarchies())


def controllers() -> frozenset[str]:
    """Controllers that containers can use here: on hybrid hosts those with a v1 tree."""
    return controllers_of(hierarchies())


def controllers_of(trees: Sequence[Hierarchy]) -> frozenset[str]:
    version = 2 if mode_of(trees) == "v2" else 1
    names = (name for tree in trees if tree.version == version for name in tree.controllers)
    return frozenset(name for name in names if not name.startswith("name="))


def hybrid_blocker() -> tuple[str, ...]:
    """Controllers that the v2 tree of a hybrid host still holds: crun 1.8 cannot work until each is mounted as v1."""
    trees = hierarchies()
    if mode_of(trees) != "hybrid":
        return ()
    return tuple(sorted(name for tree in trees if tree.version == 2 for name in tree.controllers))


def unmounted() -> tuple[str, ...]:
    """Controllers whose v1 tree exists and is not mounted here, but has a directory where it belongs: somebody mounted
    it in another mount namespace. crun takes the directory for the tree and leaves plain files in it."""
    mounted = {name for tree in hierarchies() for name in tree.controllers}
    found = []
    for line in _OWN_GROUPS.read_text().splitlines():
        _, names, _ = line.split(":", 2)
        found += [name for name in names.split(",") if name and "=" not in name and name not in mounted]
    return tuple(sorted(name for name in found if (ROOT / name).is_dir()))


def mount_v1(controller: str) -> None:
    """Give a controller its own v1 tree, taking it out of the v2 tree. Nothing happens when it has one."""
    if any(controller in tree.controllers for tree in hierarchies() if tree.version == 1):
        return
    target = ROOT / controller
    try:
        target.mkdir(exist_ok=True)
        mount("cgroup", str(target), "cgroup", data=controller)
    except OSError as error:
        raise SystemFault(f"cannot mount the cgroup controller {controller} at {target}: {error.strerror}") from error


def processes(path: str) -> set[int]:
    """Pids in the cgroup and below it, in any tree."""
    pids: set[int] = set()
    for directory in _directories(path):
        with contextlib.suppress(OSError), _opened(directory) as top:
            with contextlib.suppress(OSError):
                pids.update(_members(top))
            for above, name in _nested(top):
                with contextlib.suppress(OSError):
                    pids.update(_members(above, name))
    return pids


def thaw(path: str) -> None:
    """Let the processes in the cgroup and below it run, whoever has frozen them. Nothing happens where there is none.

    A frozen v1 cgroup keeps even SIGKILL waiting."""
    for directory in _directories(path):
        for name, word in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
            if not (directory / name).exists():
                continue
            with contextlib.suppress(OSError), _opened(directory) as top:
                _tell(top, name, word)
                # Those below may be frozen by themselves. Each is thawed after those below it, for the kernel thaws it
                # only with all that are above.
                for above, below in _nested(top):
                    _tell(above, f"{below}/{name}", word)


def _tell(directory: int, name: str, word: str) -> None:
    with contextlib.suppress(OSError):
        file = os.open(name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=directory)
        try:
            os.write(file, word.encode())
        finally:
            os.close(file)


def kill_all(path: str, timeout: float = 10.0) -> None:
    """Kill every process in the cgroup; returns when it is empty. SystemFault when something survives `timeout`."""
    thaw(path)
    for directory in _directories(path):
        if (kill := directory / "cgroup.kill").exists():
            _write(kill, "1")
    deadline = time.monotonic() + timeout
    while pids := processes(path):
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if time.monotonic() > deadline:
            raise SystemFault(f"processes {sorted(pids)} in cgroup {path} do not die")
        time.sleep(0.002)


def remove(path: str) -> None:
    """Remove a cgroup and those below it in every tree. Processes in it are not touched: they make this fail.

    Removing what is not there is no error.
    """
    name = _named(path)
    for top in _beside_each_other():
        directory = f"{top}/{name}"
        try:
            # Nearly always it is empty, and to look first would take ten times as long.
            os.rmdir(directory)
        except FileNotFoundError:
            continue
        except OSError:
            with contextlib.suppress(FileNotFoundError):
                if _is_tree(top):
                    _remove_with_nested(directory)


def _remove_with_nested(directory: str) -> None:
    with _opened(directory) as top:
        for above, name in _nested(top):
            _rmdir(name, above)
    _rmdir(directory)


def inherit_processors(path: str) -> None:
    """Let groups that are made in this one have its processors and memory nodes from the start (v1).

    The runtime tells each new group these, the same ones. Where that is news to the kernel, it looks at all groups
    beside it and at all processors: 0.7 ms beside 1,000 containers. Nothing happens where there is no such group yet.
    """
    with contextlib.suppress(OSError):
        file = os.open(f"{ROOT}/cpuset/{_named(path)}/cgroup.clone_children", os.O_RDWR | os.O_CLOEXEC)
        try:
            if os.read(file, 2) == b"0\n":
                os.write(file, b"1")
        finally:
            os.close(file)


def lift_pids_limit(path: str) -> None:
    """Let the cgroup have as many processes as the host allows."""
    for directory in _directories(path):
        if (limit := directory / "pids.max").exists():
            _write(limit, "max")


def lift_cpu_quota(path: str) -> None:
    """Let the cgroup have all the time of the processors; its period stays."""
    for directory in _directories(path):
        for name, none in (("cpu.cfs_quota_us", "-1"), ("cpu.max", "max")):
            if (limit := directory / name).exists():
                _write(limit, none)


def oom_killed(path: str) -> bool:
    """Tell if the kernel has killed a process of this cgroup for lack of memory. False when the cgroup is gone."""
    return oom_kills(path) > 0


def oom_kills(path: str) -> int:
    """Count the processes of this cgroup that the kernel has killed for lack of memory; 0 when the cgroup is gone."""
    for tree, name in ((ROOT / "memory", "memory.oom_control"), (ROOT, "memory.events")):
        try:
            file = os.open(f"{tree}/{_named(path)}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            lines = os.read(file, 4096).splitlines()
        except OSError:
            continue
        finally:
            os.close(file)
        return next((int(line[9:]) for line in lines if line.startswith(b"oom_kill ")), 0)
    return 0


def _below(root: Path, path: str) -> Path:
    return root / _named(path)


def _named(path: str) -> str:
    """The path of a cgroup below each tree, as it is written there."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or ".." in parts:
        raise ValueError(f"not the path of a cgroup of ours: {path!r}")
    return "/".join(parts)


def roots() -> list[Path]:
    """Mount points of all trees, without reading the mount table: that grows with every container."""
    return [Path(top) for top in _beside_each_other() if _is_tree(top)]


def _beside_each_other() -> list[str]:
    """List the directories of the trees, and now and then a plain directory beside them."""
    top = str(ROOT)
    if os.path.exists(f"{top}/cgroup.controllers"):
        return [top]
    with os.scandir(top) as entries:
        return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]


def _is_tree(directory: str) -> bool:
    """A plain directory may be what is left of a tree that is mounted elsewhere. The runtime writes plain files into
    it, whose pids would be waited for in vain."""
    return os.path.exists(f"{directory}/cgroup.procs")


def _directories(path: str) -> list[Path]:
    return [directory for root in roots() if (directory := _below(root, path)).is_dir()]


@contextlib.contextmanager
def _opened(directory: Path | str) -> Iterator[int]:
    fd = os.open(directory, DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


def _members(directory: int, below: str = ".") -> list[int]:
    """Pids in a cgroup by itself."""
    with open(os.open(f"{below}/cgroup.procs", os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)) as file:
        return [int(line) for line in file.read().split()]


def _nested(top: int) -> Iterator[tuple[int, str]]:
    """Cgroups below one, deepest first: the one above it, open, and its name. A container that may write there can nest
    them as deep as it likes."""
    with TreeCursor(top) as cursor:
        levels = [_groups(cursor.fd)]
        while levels:
            if levels[-1]:
                with contextlib.suppress(FileNotFoundError):
                    cursor.down(levels[-1].pop())
                    levels.append(_groups(cursor.fd))
                continue
            levels.pop()
            if levels:
                name = cursor.names[-1]
                if cursor.up():
                    yield cursor.fd, name


def _groups(directory: int) -> list[str]:
    with os.scandir(directory) as entries:
        return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]


def _rmdir(directory: str, above: int | None = None) -> None:
    # Processes that have just died leave their cgroup a moment later.
    for attempt in range(8):
        try:
            os.rmdir(directory, dir_fd=above)
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno != errno.EBUSY or attempt == 7:
                raise SystemFault(f"cannot remove the cgroup {directory}: {error.strerror}") from error
            time.sleep(0.001 * 2**attempt)
        else:
            return


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        raise SystemFault(f"cannot write {text} to {path}: {error.strerror}") from error
