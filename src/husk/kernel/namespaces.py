"""Network namespaces: made, kept, entered and given up.

A namespace lives as long as a process, an open descriptor or a bind mount refers to it. Ours are bind mounts on plain
files, so that they outlive the daemon. The kernel gives every thread its own namespace: work inside one happens in a
thread of its own that ends with the work, so that no other code can find itself in the wrong namespace.
"""

import ctypes
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from husk.aio.lone_thread import in_lone_thread
from husk.kernel import mount

T = TypeVar("T")

_CLONE_NEWNET = 0x40000000
_OWN = "/proc/thread-self/ns/net"
_libc = ctypes.CDLL(None, use_errno=True)


def _unshare_network() -> None:
    if _libc.unshare(_CLONE_NEWNET) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"create a network namespace: {os.strerror(code)}")


def _enter(descriptor: int, path: str) -> None:
    if _libc.setns(descriptor, _CLONE_NEWNET) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"enter network namespace {path}: {os.strerror(code)}")


def fresh() -> int:
    """Take this thread into a new namespace: a descriptor of it. The thread is to end soon."""
    _unshare_network()
    return os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)


def create(path: Path, setup: Callable[[int], T]) -> T:
    """Make a namespace held by `path` and call `setup` inside it, with a descriptor of it.

    The file appears before the namespace is set up: whoever sweeps the directory finds it whatever happens. When
    `setup` fails, nothing is left.
    """

    def work() -> T:
        _unshare_network()
        path.touch(mode=0o444, exist_ok=False)
        try:
            mount.bind(_OWN, str(path))
            descriptor = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
            try:
                return setup(descriptor)
            finally:
                os.close(descriptor)
        except BaseException:
            remove(path)
            raise

    return in_lone_thread(work, f"netns-{path.name}")


def run_inside(path: Path, work: Callable[[], T]) -> T:
    """Call `work` inside the namespace that `path` holds."""

    def inside() -> T:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _enter(descriptor, str(path))
        finally:
            os.close(descriptor)
        return work()

    return in_lone_thread(inside, f"netns-{path.name}")


@contextmanager
def home() -> Iterator[int]:
    """A descriptor of the calling thread's own namespace."""
    descriptor = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def visit(there: int, here: int, work: Callable[[], T]) -> T:
    """Call `work` in the namespace of one descriptor and come back to that of the other.

    For work that `create` and `run_inside` do in their own threads: the settings of an interface are written from where
    it is.
    """
    _enter(there, "of the host")
    try:
        return work()
    finally:
        _enter(here, "of a sandbox")


def remove(path: Path) -> None:
    """Let go of the namespace; it ends once no process is in it. Nothing happens when there is none."""
    mount.unmount(str(path), detach=True)
    with suppress(FileNotFoundError):
        path.unlink()


@contextmanager
def exclusive() -> Iterator[None]:
    """Hold a lock that every daemon in this network namespace takes, to choose what must be unique in it.

    The lock is on the namespace itself: it needs no path that two daemons would have to agree on, and the kernel
    releases it when the holder dies.
    """
    descriptor = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
