"""A mount namespace of the daemon's own with little in it, for programs that copy the one they are started in.

A runtime makes the mount namespace of a container as a copy of its own, reads the whole of it, and throws nearly all of
it away. Each running container has two mounts on the host, its root and its network namespace: beside 1,000 containers
these 2,000 were more than half of a start. So the runtime is started here, where the directories of the system are,
those of the daemon without what it has mounted in them, and for the moment of a start what this one container needs:
copies of mounts or of parts of them, made where the host sees them and handed over as descriptors (`Bring`).

Nothing of the host's other mounts is kept: whoever unmounts a disk must not find it held by a container that never saw
it. For the same reason what the host mounts later is not seen here: what needs that is started in the host's namespace.
"""

import asyncio
import contextlib
import ctypes
import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from husk.aio.thread_pool import ThreadPool
from husk.kernel import mount
from husk.kernel.mount import unescape

log = logging.getLogger(__name__)

T = TypeVar("T")

# Where programs, what they are linked with and the kernel's own file systems are.
_SYSTEM = ("/bin", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/proc", "/sbin", "/sys", "/usr")

# The same numbers on all architectures.
_OPEN_TREE, _MOVE_MOUNT = 428, 429
_AT_FDCWD = -100
_OPEN_TREE_CLONE = 1
_AT_RECURSIVE = 0x8000
_MOVE_MOUNT_F_EMPTY_PATH = 4

_libc = ctypes.CDLL(None, use_errno=True)


class Bring(NamedTuple):
    """A path of the host, with what is mounted there and below it, and where it is to be here: an empty file for a
    file, a directory for a directory. A mount point of the daemon's own can be where it is on the host too."""

    source: str
    target: str


class Copies:
    """Copies of parts of the host that are nowhere mounted yet. One thread makes them, another uses them, and whoever
    closes this has nothing left, also if they are made only after that."""

    def __init__(self, brought: Sequence[Bring]) -> None:
        self.brought = brought
        self._lock = threading.Lock()
        self._trees: list[int] = []
        self._failure: OSError | None = None
        self._closed = False
        self.made = False

    def make(self) -> None:
        """Blocks. What is wrong is told to who uses them."""
        try:
            trees = _copies([bring.source for bring in self.brought])
        except OSError as error:
            self._failure, trees = error, []
        with self._lock:
            self.made = True
            if not self._closed:
                self._trees, trees = trees, []
        _close(trees)

    def trees(self) -> list[int]:
        """A descriptor of each, in order."""
        if self._failure is not None:
            raise self._failure
        return self._trees

    def close(self) -> None:
        with self._lock:
            self._closed = True
            trees, self._trees = self._trees, []
        _close(trees)


class LeanMounts:
    """The namespace, and the one thread that lives in it. It is made when it is first needed."""

    def __init__(self, needed: Sequence[str]) -> None:
        """`needed` are paths that are to be there, besides the system's."""
        self._needed = needed
        self._thread = ThreadPool(1, "lean-mounts")
        self._entered = False

    async def call(self, work: Callable[[], T], copies: Copies) -> T:
        """Return what `work` gives, called where these parts of the host are too. OSError when the kernel lets none of
        this happen. The caller closes the copies."""
        if not copies.made:
            await asyncio.to_thread(copies.make)
        targets = [bring.target for bring in copies.brought]
        trees = copies.trees()
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._call, work, targets, trees)

    def forget(self, brought: Sequence[Bring]) -> None:
        """Unmount here what a `call` has brought: soon, and before any later call."""
        self._thread.submit(_forget, [bring.target for bring in brought])

    def close(self) -> None:
        """Let the namespace go; processes that are in it keep it as long as they live."""
        self._thread.shutdown()

    def _call(self, work: Callable[[], T], targets: Sequence[str], trees: Sequence[int]) -> T:
        if not self._entered:
            _enter(self._needed)
            self._entered = True
        try:
            for tree, target in zip(trees, targets, strict=True):
                _attach(tree, target)
            return work()
        except BaseException:
            with contextlib.suppress(OSError):
                _unmount(targets)
            raise


def superfluous(table: bytes, needed: Sequence[str]) -> Iterator[str]:
    """The mount points in the text of a mountinfo file that are neither the system's nor on the way to what is needed,
    in the order in which they can be unmounted."""
    points = [unescape(line.split(b" ", 5)[4]) for line in table.splitlines() if line]
    for point in sorted(reversed(points), key=lambda point: -point.rstrip("/").count("/")):
        leads_there = any(_inside(path, point) for path in needed)
        if not leads_there and not any(_inside(point, directory) for directory in _SYSTEM):
            yield point


def _inside(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def _enter(needed: Sequence[str]) -> None:
    if _libc.unshare(mount.CLONE_NEWNS) != 0:
        _fail("a mount namespace of its own")
    mount.mount("none", "/", "none", mount.MS_REC | mount.MS_PRIVATE)
    with open("/proc/thread-self/mountinfo", "rb") as table:
        points = list(superfluous(table.read(), [os.path.realpath(path) for path in needed]))
    for point in points:
        mount.unmount(point, detach=True)


def _copies(sources: Sequence[str]) -> list[int]:
    """A descriptor each of a mount that is nowhere yet, with what is mounted there and below it now."""
    copies: list[int] = []
    try:
        for path in sources:
            flags = _OPEN_TREE_CLONE | _AT_RECURSIVE | os.O_CLOEXEC
            copies.append(_checked(_libc.syscall(_OPEN_TREE, _AT_FDCWD, os.fsencode(path), flags), path))
    except OSError:
        _close(copies)
        raise
    return copies


def _close(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _attach(tree: int, target: str) -> None:
    moved = _libc.syscall(_MOVE_MOUNT, tree, b"", _AT_FDCWD, os.fsencode(target), _MOVE_MOUNT_F_EMPTY_PATH)
    _checked(moved, target)
    # What is mounted on it on the host from now on is no matter of this one's.
    mount.mount("none", target, "none", mount.MS_REC | mount.MS_PRIVATE)


def _forget(targets: Sequence[str]) -> None:
    try:
        _unmount(targets)
    except OSError as error:
        log.error("what a container is made of stays mounted where runtimes are started: %s", error)


def _unmount(targets: Sequence[str]) -> None:
    for target in targets:
        mount.unmount(target, detach=True)


def _checked(result: int, path: str) -> int:
    if result < 0:
        _fail(path)
    return result


def _fail(path: str) -> None:
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number), path)
