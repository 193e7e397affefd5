"""Needs that the daemon has of this host before it begins: rights, a cgroup tree, a file system for its data root.

Without them no container runs: the daemon says so at once, and what to do, instead of failing with the first container.
The rest is told as remarks.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from husk.errors import Forbidden, SystemFault
from husk.kernel import mount

# Bits of the kernel's capability sets.
_RIGHTS = {"CAP_SYS_ADMIN": 21, "CAP_NET_ADMIN": 12, "CAP_SYS_CHROOT": 18}
# Many of these have no room for what overlayfs writes beside files, or are one themselves.
_POOR = ("overlay", "nfs", "nfs4", "vfat", "msdos", "exfat", "cifs", "smb3", "9p", "ecryptfs", "virtiofs")
_CGROUPS = "/sys/fs/cgroup"


def require(status: str, mounts: str) -> None:
    """By the texts of /proc/self/status and /proc/self/mountinfo; Forbidden or SystemFault says what to do."""
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    effective = int(fields.get("CapEff", "0").strip(), 16)
    if missing := [name for name, bit in _RIGHTS.items() if not effective >> bit & 1]:
        raise Forbidden(
            f"the daemon lacks the right {' and '.join(missing)}, without which no container starts: run it on the "
            "host itself, or in a container with --privileged; `husk doctor` tells what else is missing"
        )
    if not any(kind in ("cgroup", "cgroup2") for _, kind, _, _ in _mounts(mounts)):
        raise SystemFault(
            f"no cgroup tree is mounted below {_CGROUPS}, without which no container starts: "
            f"mount -t cgroup2 none {_CGROUPS}"
        )


def remarks(mounts: str) -> Iterator[str]:
    """Tell the faults of the host that do not stop the daemon, but will stop its containers later."""
    locked = [point for point, kind, options, _ in _mounts(mounts) if kind.startswith("cgroup") and "ro" in options]
    if locked:
        yield (
            f"the cgroup tree at {locked[0]} is read-only, and containers will not start: "
            f"mount -o remount,rw {locked[0]}, or run the daemon on the host itself or in a container with --privileged"
        )


def require_files(mounts: str, data_root: Path) -> None:
    """SystemFault where the files of containers or builds cannot be mounted; the data root need not exist yet."""
    for place in ("containers", "layers"):
        kind = _kind(mounts, data_root / place)
        if kind in _POOR and (fault := overlay_fault(data_root / place)):
            raise SystemFault(
                f"the data root {data_root} is on {kind}, which cannot hold the files of containers (mounting an "
                f"overlay there: {(fault.strerror or str(fault)).lower()}): choose one on ext4, xfs or btrfs with "
                "--data-root"
            )


def overlay_fault(path: Path) -> OSError | None:
    """Return the error that keeps an overlay from being mounted there, found by mounting one; None if it works."""
    # A door: tempfile brings much along, and on most hosts nobody asks.
    import tempfile

    try:
        with tempfile.TemporaryDirectory(prefix=".husk-overlay-", dir=existing(path)) as scratch:
            parts = {part: f"{scratch}/{part}" for part in ("lower", "upper", "work", "merged")}
            for directory in parts.values():
                os.mkdir(directory)
            mount.mount_overlay([parts["lower"]], parts["upper"], parts["work"], parts["merged"])
            try:
                Path(parts["merged"], "written").write_text("")
            finally:
                mount.unmount(parts["merged"])
    except OSError as error:
        return error
    return None


def _kind(mounts: str, path: Path) -> str:
    """The file system that a path is on, by the device of what of it exists."""
    device = os.stat(existing(path)).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    return next((kind for _, kind, _, number in _mounts(mounts) if number == wanted), "")


def existing(path: Path) -> Path:
    """The deepest directory of a path that is there."""
    return next(each for each in (path, *path.parents) if each.is_dir())


def _mounts(text: str) -> Iterator[tuple[str, str, list[str], str]]:
    """Of each line where it is mounted, its file system, its options and its device."""
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        words = before.split()
        if len(words) > 5 and after:
            yield words[4], after.split()[0], words[5].split(","), words[2]
