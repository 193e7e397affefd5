"""Mounts of volumes, images and other containers, read as Docker reads them."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.engine.containers.config.mounts import PROPAGATIONS, declared, inherited, volumes_from, wanted_mounts
from husk.engine.model.container import MountPoint
from husk.engine.model.container_config import (
    BindOptions,
    ContainerConfig,
    DriverConfig,
    HostConfig,
    ImageOptions,
    Mount,
    TmpfsOptions,
    VolumeOptions,
)
from husk.errors import InvalidParameter


def point(*, binds: list[str] | None = None, mount: Mount | None = None, driver: str = "") -> MountPoint:
    mounts = None if mount is None else [mount]
    ((found, _),) = wanted_mounts(HostConfig(binds=binds, mounts=mounts, volume_driver=driver))
    return found


def refusal(mount: Mount) -> str:
    with pytest.raises(InvalidParameter) as caught:
        point(mount=mount)
    return caught.value.message.removeprefix(f'invalid mount config for type "{mount.type}": ')


# --- -v


@pytest.mark.parametrize(
    ("access", "label", "copy", "consistency"),
    list(
        itertools.product(("", "ro", "rw"), ("", "z", "Z"), ("", "nocopy"), ("", "consistent", "cached", "delegated"))
    ),
)
def test_every_mode_of_a_volume(access: str, label: str, copy: str, consistency: str) -> None:
    mode = ",".join(filter(None, (consistency, copy, label, access)))
    found = point(binds=[f"name:/x:{mode}"])
    assert (found.type, found.name, found.driver, found.propagation) == ("volume", "name", "", "")
    assert (found.mode, found.rw, found.copies) == (mode or "z", access != "ro", not copy)
    assert not found.anonymous and not found.declared and not found.makes_source


@pytest.mark.parametrize(
    ("access", "label", "propagation"),
    list(itertools.product(("", "ro", "rw"), ("", "z", "Z"), ("", *PROPAGATIONS))),
)
def test_every_mode_of_a_directory(access: str, label: str, propagation: str) -> None:
    mode = ",".join(filter(None, (propagation, label, access)))
    found = point(binds=[f"/a:/x:{mode}"])
    assert (found.type, found.name, found.source) == ("bind", "", "/a")
    assert (found.mode, found.rw, found.propagation) == (mode, access != "ro", propagation or "rprivate")
    assert found.makes_source and not found.copies and found.recursive and found.readonly_recursive


@pytest.mark.parametrize("propagation", PROPAGATIONS)
def test_a_volume_does_not_propagate(propagation: str) -> None:
    with pytest.raises(InvalidParameter, match="field BindOptions must not be specified"):
        point(binds=[f"name:/x:{propagation}"])


def test_a_path_alone_is_a_volume_without_a_name() -> None:
    found = point(binds=["/x/./y/"])
    assert (found.type, found.name, found.destination) == ("volume", "", "/x/y")
    assert found.anonymous and found.copies and not found.declared


def test_the_driver_of_binds() -> None:
    ((_, mount),) = wanted_mounts(HostConfig(binds=["name:/x"], volume_driver="some"))
    assert mount.volume_options == VolumeOptions(driver_config=DriverConfig(name="some"))
    ((_, mount),) = wanted_mounts(HostConfig(binds=["/a:/x"], volume_driver="some"))
    assert mount.volume_options is None


@given(st.text(alphabet="a:/rowz,.\0", max_size=20))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = point(binds=[text])
    except InvalidParameter:
        return
    assert found.destination.startswith("/") and found.destination != "/" and "\0" not in found.destination
    assert found.source.startswith("/") or found.type == "volume"


# --- --mount


def test_a_volume_in_long() -> None:
    options = VolumeOptions(no_copy=True, labels={"a": "b"}, driver_config=DriverConfig(name="local"))
    found = point(mount=Mount(type="volume", source="name", target="/x", read_only=True, volume_options=options))
    assert (found.name, found.rw, found.copies, found.mode, found.anonymous) == ("name", False, False, "z", False)
    unnamed = point(mount=Mount(type="volume", target="/x"))
    assert unnamed.anonymous and unnamed.copies and unnamed.rw


@pytest.mark.parametrize(
    ("options", "recursive", "readonly_recursive"),
    [
        (BindOptions(), True, True),
        (BindOptions(non_recursive=True), False, True),
        (BindOptions(read_only_non_recursive=True), True, False),
        (BindOptions(read_only_force_recursive=True), True, True),
    ],
)
def test_recursion(options: BindOptions, recursive: bool, readonly_recursive: bool) -> None:
    found = point(mount=Mount(type="bind", source="/a", target="/x", read_only=True, bind_options=options))
    assert (found.recursive, found.readonly_recursive) == (recursive, readonly_recursive)
    assert not found.makes_source


@pytest.mark.parametrize(("subpath", "clean"), [("a", "a"), ("a/../b/./c/", "b/c"), ("", "")])
def test_a_part_of_a_volume_or_image(subpath: str, clean: str) -> None:
    volume = Mount(type="volume", source="name", target="/x", volume_options=VolumeOptions(subpath=subpath))
    image = Mount(type="image", source="name:tag", target="/x", image_options=ImageOptions(subpath=subpath))
    assert point(mount=volume).subpath == point(mount=image).subpath == clean
    assert point(mount=volume).copies == (not subpath)
    assert point(mount=volume).staged == bool(subpath) and point(mount=image).staged


@pytest.mark.parametrize("subpath", ["/a", "..", "../a", "a/../../b", "a/../..", "a\0b"])
def test_a_part_is_inside(subpath: str) -> None:
    volume = Mount(type="volume", source="name", target="/x", volume_options=VolumeOptions(subpath=subpath))
    assert refusal(volume) == "subpath must be a relative path within the volume"
    image = Mount(type="image", source="name", target="/x", image_options=ImageOptions(subpath=subpath))
    assert refusal(image) == "subpath must be a relative path within the image"


@pytest.mark.parametrize(
    ("mount", "reason"),
    [
        (Mount(type="volume", target="/x", read_only=True), "must not set ReadOnly mode when using anonymous volumes"),
        (
            Mount(type="volume", target="/x", volume_options=VolumeOptions(subpath="a")),
            "must not set Subpath when using anonymous volumes",
        ),
        (Mount(type="volume", target="/x", bind_options=BindOptions()), "field BindOptions must not be specified"),
        (Mount(type="volume", target="/x", image_options=ImageOptions()), "field ImageOptions must not be specified"),
        (Mount(type="image", target="/x"), "field Source must not be empty"),
        (
            Mount(type="image", source="a", target="/x", volume_options=VolumeOptions()),
            "field VolumeOptions must not be specified",
        ),
        (Mount(type="tmpfs", target="/x", volume_options=VolumeOptions()), "field VolumeOptions must not be specified"),
        (
            Mount(type="bind", source="/a", target="/x",
                  bind_options=BindOptions(read_only_non_recursive=True, read_only_force_recursive=True)),
            "mount options conflict: ReadOnlyNonRecursive && ReadOnlyForceRecursive",
        ),
        (Mount(type="npipe", source="a", target="/x"), "mount type unknown"),
        (Mount(type="cluster", source="a", target="/x"), "mount type unknown"),
        (Mount(target="/x"), "mount type unknown"),
        (Mount(type="volume", source="a\0b", target="/x"), "a mount source contains a NUL character"),
        (Mount(type="volume", target="/x\0"), "a mount path contains a NUL character"),
    ],
)  # fmt: skip
def test_mounts_that_mean_nothing(mount: Mount, reason: str) -> None:
    assert refusal(mount) == reason


@pytest.mark.parametrize(
    ("options", "read_only", "words"),
    [
        (TmpfsOptions(), False, ""),
        (TmpfsOptions(size_bytes=1 << 20, mode=0o700), True, "ro,mode=700,size=1048576"),
        (TmpfsOptions(options=[["noexec"], ["uid", "7"]]), False, "noexec,uid=7"),
    ],
)
def test_tmpfs(options: TmpfsOptions, read_only: bool, words: str) -> None:
    found = point(mount=Mount(type="tmpfs", target="/x", read_only=read_only, tmpfs_options=options))
    assert (found.options, found.rw) == (words, not read_only)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (TmpfsOptions(size_bytes=-1), "TmpfsOptions.SizeBytes and Mode must not be negative"),
        (TmpfsOptions(options=[[]]), "invalid option array length"),
        (TmpfsOptions(options=[["a", "b", "c"]]), "invalid option array length"),
        (TmpfsOptions(options=[["bind"]]), "invalid option: bind"),
        (TmpfsOptions(options=[["uid", "7,exec"]]), "invalid option: uid=7,exec"),
    ],
)
def test_tmpfs_options_that_mean_nothing(options: TmpfsOptions, reason: str) -> None:
    assert refusal(Mount(type="tmpfs", target="/x", tmpfs_options=options)) == reason


# --- --volumes-from, VOLUME


@pytest.mark.parametrize(
    ("text", "name", "words"), [("a", "a", []), ("a:ro", "a", ["ro"]), ("a:rw,z", "a", ["rw", "z"])]
)
def test_volumes_from(text: str, name: str, words: list[str]) -> None:
    assert volumes_from(text) == (name, words)


@pytest.mark.parametrize("text", ["a:x", "a:ro,rw", "a:rslave", "a:nocopy"])
def test_volumes_from_has_few_modes(text: str) -> None:
    with pytest.raises(InvalidParameter, match="invalid mode: " + text[2:]):
        volumes_from(text)


def test_what_is_taken_from_other_containers() -> None:
    mounts = {
        "one": [
            MountPoint(type="volume", name="v", destination="/v", mode="z", copies=True, anonymous=True),
            MountPoint(type="bind", source="/h", destination="/h", rw=False, propagation="rslave"),
            MountPoint(type="tmpfs", destination="/t"),
        ],
        "two": [MountPoint(type="volume", name="w", destination="/v")],
    }
    taken = inherited(HostConfig(volumes_from=["one:ro"]), mounts.__getitem__)
    assert taken == [
        MountPoint(type="volume", name="v", destination="/v", rw=False, anonymous=True),
        MountPoint(type="bind", source="/h", destination="/h", rw=False, propagation="rslave"),
    ]
    taken = inherited(HostConfig(volumes_from=["one", "two"]), mounts.__getitem__)
    assert [(p.destination, p.name, p.rw) for p in taken] == [("/v", "w", True), ("/h", "", False)]
    assert mounts["one"][0].copies, "theirs stay as they are"


def test_declared_volumes_take_free_places() -> None:
    config = ContainerConfig(volumes={"/a": {}, "/b/": {}, "c": {}, "/t": {}, "//a": {}})
    found = declared(config, HostConfig(tmpfs={"/t/": ""}), ["/b"])
    assert [p.destination for p in found] == ["/a", "/c"]
    assert all(p.anonymous and p.copies and p.declared and p.mode == "" for p in found)
    with pytest.raises(InvalidParameter, match="destination can't be '/'"):
        declared(ContainerConfig(volumes={"/x/..": {}}), HostConfig(), [])
