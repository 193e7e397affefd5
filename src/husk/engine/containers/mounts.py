"""What of the host appears inside the container? Reads `Binds` and `Mounts` as clients write them."""

import posixpath

from husk.engine.containers.model import HostConfig, MountPoint
from husk.errors import InvalidParameter, NotImplementedYet

PROPAGATIONS = ("private", "rprivate", "shared", "rshared", "slave", "rslave")
_MODES = {"ro", "rw", "z", "Z", "nocopy", "consistent", "cached", "delegated"}


def mount_points(host_config: HostConfig) -> list[MountPoint]:
    """The bind mounts of a container; what needs volumes is refused until there are volumes."""
    points = [_bind(text) for text in host_config.binds or []]
    for mount in host_config.mounts or []:
        if mount.type == "tmpfs":
            _check_target(mount.target)
            continue
        if mount.type != "bind":
            raise NotImplementedYet(f'mounts of type "{mount.type}" are not implemented by Husk yet')
        _check_target(mount.target)
        if not posixpath.isabs(mount.source):
            raise InvalidParameter(
                f"invalid mount config for type \"bind\": invalid mount path: '{mount.source}' "
                "mount path must be absolute"
            )
        options = mount.bind_options or {}
        propagation = str(options.get("Propagation") or "rprivate")
        if propagation not in PROPAGATIONS:
            raise InvalidParameter(f"invalid propagation mode: {propagation}")
        if unsupported := sorted(set(options) - {"Propagation", "CreateMountpoint"}):
            raise NotImplementedYet(f"BindOptions.{unsupported[0]} is not implemented by Husk yet")
        points.append(
            MountPoint(
                type="bind",
                source=posixpath.normpath(mount.source),
                destination=posixpath.normpath(mount.target),
                rw=not mount.read_only,
                propagation=propagation,
            )
        )
    seen: set[str] = set()
    for point in points:
        if point.destination in seen:
            raise InvalidParameter(f"Duplicate mount point: {point.destination}")
        seen.add(point.destination)
    return points


def _bind(text: str) -> MountPoint:
    parts = text.split(":")
    if not 2 <= len(parts) <= 3 or not all(parts):
        if len(parts) == 1:
            raise NotImplementedYet("volumes are not implemented by Husk yet")
        raise InvalidParameter(f"invalid volume specification: '{text}'")
    source, target = parts[0], parts[1]
    modes = parts[2].split(",") if len(parts) == 3 else []
    if bad := [m for m in modes if m not in _MODES and m not in PROPAGATIONS]:
        raise InvalidParameter(f"invalid mode: {bad[0]}")
    if "ro" in modes and "rw" in modes:
        raise InvalidParameter(f"invalid mode: {parts[2]}")
    if not posixpath.isabs(source):
        raise NotImplementedYet(f'named volumes are not implemented by Husk yet (in "{text}")')
    _check_target(target)
    return MountPoint(
        type="bind",
        source=posixpath.normpath(source),
        destination=posixpath.normpath(target),
        mode=",".join(modes),
        rw="ro" not in modes,
        propagation=next((m for m in modes if m in PROPAGATIONS), "rprivate"),
    )


def _check_target(target: str) -> None:
    if not posixpath.isabs(target):
        raise InvalidParameter(f"invalid mount path: '{target}' mount path must be absolute")
    if posixpath.normpath(target) == "/":
        raise InvalidParameter("invalid specification: destination can't be '/'")
