"""Device nodes of the host that a container sees: those it names, or all of them when it is privileged."""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from husk.errors import InvalidParameter
from husk.kernel.tree_cursor import DIRECTORY
from husk.kernel.trees import walk
from husk.runtime.spec.document import Device, DeviceRule

# The runtime makes these itself, or mounts something there.
_OWN = frozenset({"pts", "shm", "mqueue", "fd", "console", "ptmx", ".lxc", ".lxd-mounts", ".udev"})


def host_devices(root: Path = Path("/dev")) -> tuple[Device, ...]:
    """Every device node of the host, for privileged containers."""
    return tuple(_walk(root))


def from_host(
    path: str, path_in_container: str = "", permissions: str = "rwm"
) -> tuple[list[Device], list[DeviceRule]]:
    """The device at a path of the host (all below it when it is a directory), with the rules that allow its use."""
    source, target = Path(path), Path("/", path_in_container or path)
    if not permissions or set(permissions) - set("rwm"):
        raise InvalidParameter(f"invalid device mode: {permissions}")
    gathering = f'error gathering device information while adding custom device "{path}"'
    try:
        mode = source.stat().st_mode
    except OSError as error:
        raise InvalidParameter(f"{gathering}: {(error.strerror or str(error)).lower()}") from None
    if stat.S_ISDIR(mode):
        devices = [_moved(device, source, target) for device in _walk(source)]
    else:
        found = _device(source)
        devices = [_moved(found, source, target)] if found else []
    if not devices:
        raise InvalidParameter(f"{gathering}: not a device node")
    return devices, [DeviceRule(True, item.type, item.major, item.minor, permissions) for item in devices]


def block_device_numbers(paths: Iterable[str]) -> dict[str, tuple[int, int]]:
    """(major, minor) of each of the paths, which must be block devices."""
    numbers = {}
    for path in paths:
        try:
            status = os.stat(path)
        except OSError as error:
            raise InvalidParameter(f"stat {path}: {(error.strerror or str(error)).lower()}") from None
        if not stat.S_ISBLK(status.st_mode):
            raise InvalidParameter(f"{path} is not a block device: its I/O cannot be limited")
        numbers[path] = (os.major(status.st_rdev), os.minor(status.st_rdev))
    return numbers


def _walk(root: Path) -> Iterator[Device]:
    top = os.open(root, DIRECTORY & ~os.O_NOFOLLOW)
    try:
        whole = root == Path("/dev")
        for found in walk(top):
            if whole and (found.above[0] if found.above else found.name) in _OWN:
                continue
            if (stat.S_ISCHR(mode := found.status.st_mode) or stat.S_ISBLK(mode)) and (
                device := _device(Path(root, found.path))
            ):
                yield device
    finally:
        os.close(top)


def _device(path: Path) -> Device | None:
    try:
        status = path.stat()
    except OSError:
        return None
    if stat.S_ISCHR(status.st_mode):
        kind = "c"
    elif stat.S_ISBLK(status.st_mode):
        kind = "b"
    else:
        return None
    major, minor = os.major(status.st_rdev), os.minor(status.st_rdev)
    return Device(str(path), kind, major, minor, stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid)


def _moved(device: Device, source: Path, target: Path) -> Device:
    path = target / Path(device.path).relative_to(source)
    return Device(str(path), device.type, device.major, device.minor, device.file_mode, device.uid, device.gid)
