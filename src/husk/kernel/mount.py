"""Mounts and unmounts: mount(2) and umount2(2), overlayfs, bind mounts, and the list of what is mounted.

Nothing here remembers anything: the kernel's mount table is the only record, and every function can be repeated.

Mounts in the namespace of a process: `/proc/<pid>/mountinfo`, read into entries.
"""

import contextlib
import ctypes
import errno
import functools
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from husk.aio.lone_thread import in_lone_thread

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 1 << 18
MNT_DETACH = 0x2
UMOUNT_NOFOLLOW = 0x8
CLONE_FS = 0x200
CLONE_NEWNS = 0x20000
# Says of a directory in an upper layer that nothing of those below shows through.
OPAQUE_XATTR = "trusted.overlay.opaque"

# mount(2) copies at most one page of options, and does not say so when it cuts the rest off.
_MAX_DATA = os.sysconf("SC_PAGE_SIZE") - 1
# What overlayfs takes of read-only directories in one mount.
MOST_LOWER = 500

# A directory that was renamed or a file whose metadata alone was copied up would be an incomplete entry in the upper
# directory, and `commit` reads that directory; `nofollow` also keeps a hostile layer from redirecting anything.
_OVERLAY_OPTIONS = "index=off,metacopy=off,redirect_dir=nofollow"

_SEPARATORS = "\\,"

_libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, fstype: str, flags: int = 0, data: str = "") -> None:
    """mount(2); raises OSError with the target's name."""
    arguments = (os.fsencode(source), os.fsencode(target), fstype.encode(), ctypes.c_ulong(flags), os.fsencode(data))
    if _libc.mount(*arguments) != 0:
        _fail(target)


def unmount(target: str, detach: bool = False) -> None:
    """Take the topmost mount off `target`; nothing happens when there is none or the path does not exist."""
    flags = UMOUNT_NOFOLLOW | (MNT_DETACH if detach else 0)
    if _libc.umount2(os.fsencode(target), flags) != 0 and ctypes.get_errno() not in (errno.EINVAL, errno.ENOENT):
        _fail(target)


def bind(source: str, target: str, readonly: bool = False) -> None:
    """Make `source` appear at `target`; what is mounted below `source` does not come along."""
    mount(source, target, "none", MS_BIND)
    if readonly:
        try:
            # The kernel ignores MS_RDONLY in the call that makes the bind mount.
            mount("none", target, "none", MS_REMOUNT | MS_BIND | MS_RDONLY)
        except OSError:
            unmount(target, detach=True)
            raise


def mount_overlay(lower: Sequence[str], upper: str, work: str, target: str, *, volatile: bool = False) -> None:
    """Mount `upper` over the read-only directories `lower` (the topmost first); without `upper` all is read-only.

    What is written to a `volatile` one is not synced: an fsync in it costs nothing, and neither does its unmounting,
    which otherwise writes out all that any program has written to the disk. For what a power cut may take.
    """
    unsynced = ""
    if volatile and upper and _supports_volatile():
        # The kernel leaves this where one was mounted, and mounts no other on it: a crash may have taken something.
        mark = os.path.join(work, "work", "incompat", "volatile")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(mark, "dirty"))
            os.rmdir(mark)
        unsynced = ",volatile"
    base, data = fitted_options(lower, upper, work, unsynced)
    if not base:
        mount("overlay", target, "overlay", data=data)
    else:
        _mount_overlay_from(base, data, target)


@functools.cache
def _supports_volatile() -> bool:
    """Linux 5.10 and newer do."""
    return [int(number) for number in re.findall(r"\d+", os.uname().release)[:2]] >= [5, 10]


def overlay_options(lower: Sequence[str], upper: str, work: str) -> str:
    """The option string of an overlay mount, with the characters escaped that separate options and directories."""
    layers = ":".join(_escape(directory, _SEPARATORS + ":") for directory in lower)
    writable = f",upperdir={_escape(upper, _SEPARATORS)},workdir={_escape(work, _SEPARATORS)}" if upper else ""
    return f"lowerdir={layers}{writable},{_OVERLAY_OPTIONS}"


def fitted_options(lower: Sequence[str], upper: str, work: str, more: str = "") -> tuple[str, str]:
    """Return the directory to mount an overlay from ("" for any), and its options with `more` behind them.

    Where the names of all directories have no room, they are told from the directory that most of them are in. All are
    named or none: OSError (E2BIG) if even that is too long, or more than overlayfs takes.
    """
    data = overlay_options(lower, upper, work) + more
    if len(lower) <= MOST_LOWER and len(os.fsencode(data)) <= _MAX_DATA:
        return "", data
    if len(lower) <= MOST_LOWER:
        base = Counter(map(os.path.dirname, lower)).most_common(1)[0][0]
        short = [min(os.path.relpath(directory, base), directory, key=len) for directory in lower]
        data = overlay_options(short, upper, work) + more
        if len(os.fsencode(data)) <= _MAX_DATA:
            return base, data
    raise OSError(errno.E2BIG, f"max depth exceeded: {len(lower)} layers do not go into one mount")


def mounts_below(path: str) -> list[str]:
    """The mount points at or below `path`, in the order in which they can be unmounted; named by `path`, also where
    directories above it are links, which the kernel's table does not know."""
    path = os.path.abspath(path)
    real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    with open("/proc/self/mountinfo", "rb") as table:
        return [path + point[len(real) :] for point in parse_mounts_below(table.read(), real)]


def parse_mounts_below(table: bytes, path: str) -> list[str]:
    """`mounts_below` for the text of a mountinfo file."""
    path = os.path.abspath(path)
    inside = path.rstrip("/") + "/"
    points = (unescape(line.split(b" ", 5)[4]) for line in table.splitlines() if line)
    found = [point for point in points if point == path or point.startswith(inside)]
    # A later line may be mounted on top of an earlier one at the same place.
    return sorted(reversed(found), key=lambda point: -point.rstrip("/").count("/"))


def overlaid() -> set[str]:
    """The read-only directories of all overlay mounts, as they were named when those were made."""
    with open("/proc/self/mountinfo", "rb") as table:
        return parse_overlaid(table.read())


def parse_overlaid(table: bytes) -> set[str]:
    """`overlaid` for the text of a mountinfo file."""
    found: set[str] = set()
    for line in table.splitlines():
        kind, _, options = line.partition(b" - ")[2].split(b" ", 2)
        # A separator that belongs to a name stands behind a backslash, which itself is written as a number.
        for option in re.split(rb"(?<!\\134),", options) if kind == b"overlay" else ():
            key, _, directories = option.partition(b"=")
            if key in (b"lowerdir", b"lowerdir+"):
                names = map(unescape, re.split(rb"(?<!\\134):", directories))
                found.update(re.sub(r"\\(.)", r"\1", name) for name in names)
    return found


def shared_of(path: str) -> tuple[str, frozenset[str]]:
    """Return where the mount that holds `path` is, and how it propagates: `shared`, `master` (a slave), or nothing."""
    with open("/proc/self/mountinfo", "rb") as table:
        return parse_shared_of(table.read(), path)


def parse_shared_of(table: bytes, path: str) -> tuple[str, frozenset[str]]:
    """`shared_of` for the text of a mountinfo file."""
    path = os.path.realpath(path)
    best, tags = "", frozenset[str]()
    for line in table.splitlines():
        fields = line.split(b" ")
        point = unescape(fields[4])
        # A later line at the same place is mounted on top of the earlier one.
        if len(point) >= len(best) and (path == point or path.startswith(point.rstrip("/") + "/")):
            optional = fields[6 : fields.index(b"-")]
            best, tags = point, frozenset(tag.partition(b":")[0].decode() for tag in optional)
    return best, tags


def _mount_overlay_from(base: str, data: str, target: str) -> None:
    """Mount with relative lower directories: they fit into a page where many absolute ones do not.

    The working directory belongs to the process, so a thread that leaves that arrangement does it, and ends.
    """

    def work() -> None:
        os.chdir(base)
        mount("overlay", target, "overlay", data=data)

    _in_a_thread_apart(work)


def remount_in(pid: int, points: Sequence[str], flags: int) -> None:
    """Give bind mounts in the mount namespace of a process these flags. It must not run code of its own yet."""
    namespace = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)

    def work() -> None:
        if _libc.setns(namespace, CLONE_NEWNS) != 0:
            _fail(f"/proc/{pid}/ns/mnt")
        for point in points:
            mount("none", point, "none", MS_REMOUNT | MS_BIND | flags)

    try:
        _in_a_thread_apart(work)
    finally:
        os.close(namespace)


def _in_a_thread_apart(do: Callable[[], None]) -> None:
    """In a thread whose working directory and root are its own, and which ends afterwards."""

    def work() -> None:
        if _libc.unshare(CLONE_FS) != 0:
            _fail("/")
        do()

    in_lone_thread(work, "mount")


def _escape(path: str, special: str) -> str:
    return "".join("\\" + character if character in special else character for character in path)


def _fail(path: str) -> None:
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number), path)


class Mounted(msgspec.Struct, frozen=True):
    """One line: where it is in the view of the process, and what."""

    point: str
    kind: str
    device: str
    root: str
    options: frozenset[str]


def mounted(pid: int | str = "self", below: str = "") -> list[Mounted]:
    """All, or those at and below a place."""
    with open(f"/proc/{pid}/mountinfo", "rb", buffering=0) as table:
        return parse_mountinfo(table.readall(), below)


def parse_mountinfo(table: bytes, below: str = "") -> list[Mounted]:
    found = []
    sought, inside = f" {below}", f"{below}/"
    # Decoded as a whole, and at line feeds alone: a host may have thousands of lines, and each start looks at some.
    for line in os.fsdecode(table).split("\n"):
        if not line or sought not in line:
            continue
        fields = line.split(" ")
        kind = fields[fields.index("-", 6) + 1]
        point, root = (unescape(os.fsencode(each)) if "\\" in each else each for each in (fields[4], fields[3]))
        if below and point != below and not point.startswith(inside):
            continue
        found.append(Mounted(point, kind, fields[2], root, frozenset(fields[5].split(","))))
    return found


def unescape(field: bytes) -> str:
    if b"\\" in field:
        field = re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), field)
    return os.fsdecode(field)
