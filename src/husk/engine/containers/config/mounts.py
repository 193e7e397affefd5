"""Mounts as clients ask for them: reading of `Binds`, `Mounts`, `Volumes` and `VolumesFrom`. Pure.

What comes out are mount points as the container's record keeps them, still without what only the host knows: where a
volume lies, which layers an image has. `husk.engine.containers.mounts` completes them.
"""

import posixpath
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from husk.engine.model.container import MountPoint
from husk.engine.model.container_config import (
    BindOptions,
    ContainerConfig,
    DriverConfig,
    HostConfig,
    Mount,
    TmpfsOptions,
    VolumeOptions,
)
from husk.engine.model.paths import check_length, clean
from husk.errors import InvalidParameter
from husk.runtime.assembly.procfs import check_name

PROPAGATIONS = ("private", "rprivate", "shared", "rshared", "slave", "rslave")
DEFAULT_PROPAGATION = "rprivate"
# How many a container may have: each costs a record, a look at the host and a call of the kernel, at every start.
MOST_MOUNTS = 2000
# At most one word of each kind.
_MODES = (("ro", "rw"), ("z", "Z"), ("nocopy",), ("consistent", "cached", "delegated"), PROPAGATIONS)
_LONGEST_MODE = 100
_TMPFS_FLAGS = frozenset({
    "async", "atime", "defaults", "dev", "diratime", "dirsync", "exec", "noatime", "nodev", "nodiratime", "noexec",
    "norelatime", "nostrictatime", "nosuid", "private", "relatime", "ro", "rprivate", "rshared", "rslave", "rw",
    "shared", "slave", "strictatime", "suid", "sync",
})  # fmt: skip
_TMPFS_KEYS = frozenset({"size", "mode", "uid", "gid", "nr_inodes", "nr_blocks", "mpol"})


class WantedMount(NamedTuple):
    """One mount of a new container: the point, and for a volume the request that the point came from."""

    point: MountPoint
    mount: Mount


def wanted_mounts(host_config: HostConfig) -> list[WantedMount]:
    """The mounts that a client asked for by `Binds` and `Mounts`, no two of them in one place.

    As with dockerd, one of `Mounts` may be where a tmpfs of `Tmpfs` is, which replaces it: its volume is made all the
    same."""
    given = (host_config.binds, host_config.mounts, host_config.tmpfs, host_config.volumes_from)
    _check_number(sum(len(each or ()) for each in given))
    binds = [_bind(text, host_config.volume_driver) for text in host_config.binds or []]
    wanted = [*binds, *(_mount(mount) for mount in host_config.mounts or [])]
    tmpfs, seen = {clean(path) for path in host_config.tmpfs or {}}, set[str]()
    for number, (point, _) in enumerate(wanted):
        place = point.destination
        if place in seen or (place in tmpfs and number < len(binds)):
            raise InvalidParameter(f"Duplicate mount point: {place}")
        seen.add(place)
    return wanted


def inherited(host_config: HostConfig, mounts_of: Callable[[str], Iterable[MountPoint]]) -> list[MountPoint]:
    """Return the mounts that `VolumesFrom` takes from other containers; a later one wins. A tmpfs cannot be shared."""
    points: dict[str, MountPoint] = {}
    for text in host_config.volumes_from or []:
        name, mode = volumes_from(text)
        for point in mounts_of(name):
            if point.type != "tmpfs":
                rw = point.rw and "ro" not in mode
                points[point.destination] = msgspec.structs.replace(point, mode="", rw=rw, copies=False)
    return list(points.values())


def volumes_from(text: str) -> tuple[str, list[str]]:
    """(container, words of the mode) of `container[:mode]`."""
    name, separator, mode = text.partition(":")
    if not name:
        raise InvalidParameter("volumes-from specification cannot be an empty string")
    words = mode.split(",") if separator else []
    if separator and (not _is_mode(mode) or any(word in (*PROPAGATIONS, "nocopy") for word in words)):
        raise InvalidParameter(f"invalid mode: {mode}")
    return name, words


def declared(config: ContainerConfig, host_config: HostConfig, taken: Iterable[str]) -> list[MountPoint]:
    """A volume without a name at each place that `Volumes` declares and where nothing is mounted yet."""
    _check_number(len(config.volumes or ()))
    there = {*taken, *(clean(path) for path in host_config.tmpfs or {})}
    places = dict.fromkeys(clean(path) for path in config.volumes or {})
    if "/" in places:
        raise InvalidParameter("invalid specification: destination can't be '/'")
    for place in places:
        check_name("volume", place)
    return [
        MountPoint(type="volume", destination=place, copies=True, anonymous=True, declared=True)
        for place in places
        if place not in there
    ]


def _check_number(given: int) -> None:
    if given > MOST_MOUNTS:
        raise InvalidParameter(f"too many mounts: {given} are asked for, and a container has {MOST_MOUNTS} at most")


def check_target(target: str) -> None:
    if "\0" in target:
        raise InvalidParameter("a mount path contains a NUL character")
    check_length(target)
    if not posixpath.isabs(target):
        raise InvalidParameter(f"invalid mount path: '{target}' mount path must be absolute")
    if clean(target) == "/":
        raise InvalidParameter("invalid specification: destination can't be '/'")


def _bind(text: str, volume_driver: str) -> WantedMount:
    """`source:target[:mode]`, or `target` alone for a volume without a name."""
    parts = text.split(":")
    if len(parts) > 3 or not parts[0] or (len(parts) == 2 and _is_mode(parts[1])):
        raise InvalidParameter(f"invalid volume specification: '{text}'")
    source, target = (parts[0], parts[1]) if len(parts) > 1 else ("", parts[0])
    mode = parts[2] if len(parts) == 3 else ""
    if not _is_mode(mode):
        raise InvalidParameter(f"invalid mode: {mode}")
    words = mode.split(",")
    propagation = next((word for word in words if word in PROPAGATIONS), "")
    kind = "bind" if posixpath.isabs(source) else "volume"
    driven = bool(volume_driver) and kind == "volume"
    mount = Mount(
        type=kind,
        source=source,
        target=target,
        read_only="ro" in words,
        bind_options=BindOptions(propagation=propagation) if propagation else None,
        volume_options=VolumeOptions(driver_config=DriverConfig(name=volume_driver)) if driven else None,
    )
    try:
        if "nocopy" in words and mount.type == "bind":
            raise InvalidParameter('invalid mount config for type "bind": field VolumeOptions must not be specified')
        point = _mount(mount).point
    except InvalidParameter as error:
        raise InvalidParameter(f"invalid volume specification: '{text}': {error.message}") from error
    copies = point.copies and "nocopy" not in words
    point = msgspec.structs.replace(point, mode=mode or point.mode, makes_source=mount.type == "bind", copies=copies)
    return WantedMount(point, mount)


def _is_mode(text: str) -> bool:
    if not text:
        return True
    if len(text) > _LONGEST_MODE:
        return False
    words = text.split(",")
    known = [word for kind in _MODES for word in kind if word in words]
    return len(known) == len(words) and all(sum(word in kind for word in words) <= 1 for kind in _MODES)


def _mount(mount: Mount) -> WantedMount:
    try:
        if not mount.target:
            raise InvalidParameter("field Target must not be empty")
        check_target(mount.target)
        if "\0" in mount.source:
            raise InvalidParameter("a mount source contains a NUL character")
        check_length(mount.source)
        if (read := _READERS.get(mount.type)) is None:
            raise InvalidParameter("mount type unknown")
        check_name(mount.type, clean(mount.target))
        return WantedMount(read(mount), mount)
    except InvalidParameter as error:
        raise InvalidParameter(f'invalid mount config for type "{mount.type}": {error.message}') from error


def _bind_point(mount: Mount) -> MountPoint:
    if not mount.source:
        raise InvalidParameter("field Source must not be empty")
    options = mount.bind_options or BindOptions()
    if options.propagation and options.propagation not in PROPAGATIONS:
        raise InvalidParameter(f"invalid propagation mode: {options.propagation}")
    _refuse(mount, "volume_options", "image_options")
    if not posixpath.isabs(mount.source):
        raise InvalidParameter(f"invalid mount path: '{mount.source}' mount path must be absolute")
    if options.read_only_force_recursive and options.read_only_non_recursive:
        raise InvalidParameter("mount options conflict: ReadOnlyNonRecursive && ReadOnlyForceRecursive")
    return MountPoint(
        type="bind",
        source=clean(mount.source),
        destination=clean(mount.target),
        rw=not mount.read_only,
        propagation=options.propagation or DEFAULT_PROPAGATION,
        makes_source=options.create_mountpoint,
        recursive=not options.non_recursive,
        readonly_recursive=not options.read_only_non_recursive,
    )


def _volume_point(mount: Mount) -> MountPoint:
    _refuse(mount, "bind_options", "image_options")
    options = mount.volume_options
    subpath = options.subpath if options else ""
    if subpath and not mount.source:
        raise InvalidParameter("must not set Subpath when using anonymous volumes")
    _check_subpath(subpath, "volume")
    if mount.read_only and not mount.source:
        raise InvalidParameter("must not set ReadOnly mode when using anonymous volumes")
    return MountPoint(
        type="volume",
        name=mount.source,
        destination=clean(mount.target),
        mode="z",
        rw=not mount.read_only,
        subpath=posixpath.normpath(subpath) if subpath else "",
        copies=not (subpath or (options and options.no_copy)),
        anonymous=not mount.source,
    )


def _tmpfs_point(mount: Mount) -> MountPoint:
    if mount.source:
        raise InvalidParameter("field Source must not be specified")
    _refuse(mount, "bind_options", "volume_options", "image_options")
    return MountPoint(
        type="tmpfs",
        destination=clean(mount.target),
        rw=not mount.read_only,
        options=tmpfs_words(mount.tmpfs_options or TmpfsOptions(), mount.read_only),
    )


def _image_point(mount: Mount) -> MountPoint:
    _refuse(mount, "bind_options", "volume_options")
    if not mount.source:
        raise InvalidParameter("field Source must not be empty")
    subpath = mount.image_options.subpath if mount.image_options else ""
    _check_subpath(subpath, "image")
    return MountPoint(
        type="image",
        name=mount.source,
        destination=clean(mount.target),
        rw=False,
        subpath=posixpath.normpath(subpath) if subpath else "",
    )


_READERS: dict[str, Callable[[Mount], MountPoint]] = {
    "bind": _bind_point,
    "volume": _volume_point,
    "tmpfs": _tmpfs_point,
    "image": _image_point,
}


def tmpfs_words(options: TmpfsOptions, read_only: bool) -> str:
    """The options of a tmpfs as one text, as `HostConfig.Tmpfs` has them."""
    if options.size_bytes < 0 or options.mode < 0:
        raise InvalidParameter("TmpfsOptions.SizeBytes and Mode must not be negative")
    words = ["ro"] if read_only else []
    words += [f"mode={options.mode:o}"] if options.mode else []
    words += [f"size={options.size_bytes}"] if options.size_bytes else []
    for option in options.options or []:
        if len(option) not in (1, 2):
            raise InvalidParameter("invalid option array length")
        known = _TMPFS_FLAGS if len(option) == 1 else _TMPFS_KEYS
        if option[0] not in known or any(character in ",\0" for word in option for character in word):
            raise InvalidParameter(f"invalid option: {'='.join(option)}")
        words.append("=".join(option))
    return ",".join(words)


def _refuse(mount: Mount, *names: str) -> None:
    for name in names:
        if getattr(mount, name) is not None:
            wire = dict(zip(Mount.__struct_fields__, Mount.__struct_encode_fields__, strict=True))[name]
            raise InvalidParameter(f"field {wire} must not be specified")


def _check_subpath(subpath: str, what: str) -> None:
    """A path that stays inside, by its words alone; links are dealt with when it is opened."""
    inside = posixpath.normpath(subpath)
    if subpath and (posixpath.isabs(subpath) or inside == ".." or inside.startswith("../") or "\0" in subpath):
        raise InvalidParameter(f"subpath must be a relative path within the {what}")
