"""Gives a process a view of the file systems that is its own, with no way back out of it.

A mount namespace of its own, one directory as its root, and nothing else mounted: `unshare`, then `bind` and `restrict`
what belongs to the view, then `pivot`. The calls change the whole process: they are for workers, never for the daemon.
What was mounted here goes when the process ends, however it ends.
"""

import ctypes
import errno
import os

from husk.kernel.mount import MNT_DETACH, MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_RDONLY, MS_REC, MS_REMOUNT, mount

_CLONE_NEWNS = 0x20000
_MS_SLAVE = 1 << 19
_SYS_PIVOT_ROOT = 155 if os.uname().machine == "x86_64" else 41
_SYS_MOUNT_SETATTR = 442
_AT_EMPTY_PATH, _AT_RECURSIVE = 0x1000, 0x8000
# These attributes have the same numbers as the flags of mount(2), but for noexec.
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV, _ATTR_NOEXEC = 0x1, 0x2, 0x4, 0x8
_PRIVATE = 1 << 18

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


def restrict(target: int, readonly: bool = False, programs: bool = False) -> None:
    """No devices, no set-user-id, no programs unless it says so, and perhaps no writing, in the mount at `target` and
    those below it."""
    wanted = _ATTR_NOSUID | _ATTR_NODEV | (0 if programs else _ATTR_NOEXEC) | (_ATTR_RDONLY if readonly else 0)
    attributes = _MountAttributes(wanted, 0, _PRIVATE, 0)
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
