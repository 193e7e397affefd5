"""Gives a process a view of the file systems that is its own, with no way back out of it.

A mount namespace of its own, one directory as its root, and nothing else mounted: `unshare`, then `bind` and `restrict`
what belongs to the view, then `pivot`. The calls change the whole process: they are for workers, never for the daemon.
What was mounted here goes when the process ends, however it ends.
"""

import contextlib
import ctypes
import errno
import os
from collections.abc import Iterable

from husk.kernel.mount import (
    MNT_DETACH,
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    mount,
)
from husk.kernel.rooted import open_in_root

_CLONE_NEWNS = 0x20000
_MS_SLAVE = 1 << 19
_SYS_PIVOT_ROOT = 155 if os.uname().machine == "x86_64" else 41
_SYS_MOUNT_SETATTR = 442
_AT_EMPTY_PATH, _AT_RECURSIVE = 0x1000, 0x8000
# These attributes have the same numbers as the flags of mount(2), but for noexec.
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV, _ATTR_NOEXEC = 0x1, 0x2, 0x4, 0x8
# The same numbers on all architectures.
_SYS_OPEN_TREE, _SYS_MOVE_MOUNT = 428, 429
_OPEN_TREE_CLONE = 1
_MOVE_FROM_DESCRIPTOR, _MOVE_TO_DESCRIPTOR = 0x4, 0x40
_TMPFS = 0x01021994
# More than struct statfs has; its type comes first.
_STATFS_SIZE = 256

_libc = ctypes.CDLL(None, use_errno=True)


class _MountAttributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("user_namespace", ctypes.c_uint64),
    )


def unshare() -> None:
    """Leave the host's mount namespace: what is mounted from now on is seen by this process alone."""
    if _libc.unshare(_CLONE_NEWNS) != 0:
        _fail("mount namespace")
    # What the host unmounts must not stay busy because of us.
    mount("none", "/", "none", MS_REC | _MS_SLAVE)


def bind(source: str, target: int) -> None:
    """Make `source`, with all that is mounted below it, appear where the descriptor `target` points to."""
    mount(source, f"/proc/self/fd/{target}", "none", MS_BIND | MS_REC)


def memory_of(process: int, root: str, places: Iterable[str]) -> dict[str, int]:
    """Copies of the tmpfs that a process of a container has at these places: mounts that are nowhere yet, by place.

    They can be reached in its mount namespace alone, so this process goes there and comes back. It takes none if the
    process is gone or another one has its number by now: one whose root is not the directory `root`. In there a link of
    the kernel's (`/proc/1/root`) is not followed, and what is no tmpfs is not taken.
    """
    expected = os.stat(root)
    with contextlib.ExitStack() as stack:

        def opened(path: str, flags: int) -> int:
            descriptor = os.open(path, flags | os.O_CLOEXEC)
            stack.callback(os.close, descriptor)
            return descriptor

        home, own = opened("/", os.O_PATH | os.O_DIRECTORY), opened("/proc/self/ns/mnt", os.O_RDONLY)
        try:
            there = opened(f"/proc/{process}/ns/mnt", os.O_RDONLY)
        except (FileNotFoundError, ProcessLookupError):
            return {}
        _enter(there)
        try:
            found = os.stat("/")
            if (found.st_dev, found.st_ino) != (expected.st_dev, expected.st_ino):
                return {}
            return {place: tree for place in places if (tree := _tmpfs_at(place)) is not None}
        finally:
            _enter(own)
            # The namespace's own root is not ours where we live in a part of it.
            os.chdir(home)
            os.chroot(".")


def _enter(namespace: int) -> None:
    if _libc.setns(namespace, _CLONE_NEWNS) != 0:
        _fail("mount namespace")


def _tmpfs_at(place: str) -> int | None:
    """A copy of the tmpfs at a place; None if something else is there, or nothing."""
    try:
        found = open_in_root("/", place, os.O_PATH | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        told = ctypes.create_string_buffer(_STATFS_SIZE)
        if _libc.fstatfs(found, told) != 0 or ctypes.c_long.from_buffer(told).value != _TMPFS:
            return None
        flags = _OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_EMPTY_PATH
        tree = _libc.syscall(_SYS_OPEN_TREE, found, b"", ctypes.c_uint(flags))
        return int(tree) if tree >= 0 else None
    finally:
        os.close(found)


def attach(tree: int, target: int) -> None:
    """Make a mount that is nowhere yet appear where the descriptor `target` points to.

    It is made private before: a container that shares its mounts would see what is mounted on this one, and keep it.
    """
    mount("none", f"/proc/self/fd/{tree}", "none", MS_PRIVATE)
    flags = _MOVE_FROM_DESCRIPTOR | _MOVE_TO_DESCRIPTOR
    if _libc.syscall(_SYS_MOVE_MOUNT, tree, b"", target, b"", ctypes.c_uint(flags)) != 0:
        _fail("mount")


def restrict(target: int, readonly: bool = False, programs: bool = False) -> None:
    """No devices, no set-user-id, no programs unless it says so, and perhaps no writing, in the mount at `target` and
    those below it."""
    wanted = _ATTR_NOSUID | _ATTR_NODEV | (0 if programs else _ATTR_NOEXEC) | (_ATTR_RDONLY if readonly else 0)
    attributes = _MountAttributes(wanted, 0, MS_PRIVATE, 0)
    flags = _AT_EMPTY_PATH | _AT_RECURSIVE
    done = _libc.syscall(
        _SYS_MOUNT_SETATTR, target, b"", flags, ctypes.byref(attributes), ctypes.c_size_t(ctypes.sizeof(attributes))
    )
    if done != 0:
        if ctypes.get_errno() != errno.ENOSYS:
            _fail("mount attributes")
        # Before Linux 5.12: only the topmost mount can be changed.
        options = MS_NOSUID | MS_NODEV | (0 if programs else MS_NOEXEC) | (MS_RDONLY if readonly else 0)
        mount("none", f"/proc/self/fd/{target}", "none", MS_REMOUNT | MS_BIND | options)


def pivot(root: str) -> None:
    """Make the mount point `root` the root directory, and let go of everything else."""
    os.chdir(root)
    # Both at the same place: the old root ends up on top of the new one, and is taken off.
    if _libc.syscall(_SYS_PIVOT_ROOT, b".", b".") == 0:
        if _libc.umount2(b".", MNT_DETACH) != 0:
            _fail(root)
    else:
        # The initial ramdisk cannot be pivoted away from.
        if ctypes.get_errno() != errno.EINVAL:
            _fail(root)
        os.chroot(".")
    os.chdir("/")


def _fail(what: str) -> None:
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number), what)
