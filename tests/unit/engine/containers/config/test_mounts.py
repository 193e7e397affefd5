"""Binds and mounts, read as Docker reads them and refused in its words."""

import pytest

from husk.engine.containers.config.mounts import MOST_MOUNTS, declared, wanted_mounts
from husk.engine.model.container import MountPoint
from husk.engine.model.container_config import (
    BindOptions,
    ContainerConfig,
    HostConfig,
    Mount,
    TmpfsOptions,
    VolumeOptions,
)
from husk.errors import InvalidParameter


def mount_points(host_config: HostConfig) -> list[MountPoint]:
    return [wanted.point for wanted in wanted_mounts(host_config)]


def bind(text: str) -> MountPoint:
    (point,) = mount_points(HostConfig(binds=[text]))
    return point


def refusal(host_config: HostConfig) -> str:
    with pytest.raises(InvalidParameter) as caught:
        mount_points(host_config)
    return caught.value.message


@pytest.mark.parametrize(
    ("text", "source", "destination", "rw", "propagation"),
    [
        ("/a:/b", "/a", "/b", True, "rprivate"),
        ("/a/../c/:/b//d/", "/c", "/b/d", True, "rprivate"),
        ("//a://b", "/a", "/b", True, "rprivate"),
        ("/a:/b:ro", "/a", "/b", False, "rprivate"),
        ("/a:/b:rw,z,rshared", "/a", "/b", True, "rshared"),
        ("/a:/b:slave,cached", "/a", "/b", True, "slave"),
    ],
)
def test_a_bind_is_read(text: str, source: str, destination: str, rw: bool, propagation: str) -> None:
    point = bind(text)
    assert (point.source, point.destination, point.rw, point.propagation) == (source, destination, rw, propagation)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "invalid volume specification: ''"),
        (":/b", "invalid volume specification: ':/b'"),
        ("/a:rw", "invalid volume specification: '/a:rw'"),
        ("/a:/b:ro:x", "invalid volume specification: '/a:/b:ro:x'"),
        ("/a:/b:ro,rw", "invalid mode: ro,rw"),
        ("/a:/b:ro,ro", "invalid mode: ro,ro"),
        ("/a:/b:private,shared", "invalid mode: private,shared"),
        ("/a:/b:readonly", "invalid mode: readonly"),
        (
            "/a:b",
            "invalid volume specification: '/a:b': invalid mount config for type \"bind\": "
            "invalid mount path: 'b' mount path must be absolute",
        ),
        (
            "/a://",
            "invalid volume specification: '/a://': invalid mount config for type \"bind\": "
            "invalid specification: destination can't be '/'",
        ),
        ("/a:/b:" + "ro," * 40, "invalid mode: " + "ro," * 40),
        (
            "/a:/b:nocopy",
            "invalid volume specification: '/a:/b:nocopy': invalid mount config for type \"bind\": "
            "field VolumeOptions must not be specified",
        ),
    ],
)
def test_a_bind_that_means_nothing_is_refused(text: str, message: str) -> None:
    assert refusal(HostConfig(binds=[text])) == message


@pytest.mark.parametrize(
    ("text", "name", "rw", "copies"),
    [("/data", "", True, True), ("name:/data:ro", "name", False, True), ("name:/data:nocopy", "name", True, False)],
)
def test_what_is_no_path_is_a_volume(text: str, name: str, rw: bool, copies: bool) -> None:
    point = bind(text)
    assert (point.type, point.name, point.destination) == ("volume", name, "/data")
    assert (point.rw, point.copies) == (rw, copies)


def test_a_mount_is_a_bind_in_long() -> None:
    options = BindOptions(propagation="rslave", create_mountpoint=True)
    mount = Mount(type="bind", source="/a/", target="/b/", read_only=True, bind_options=options)
    (point,) = mount_points(HostConfig(mounts=[mount]))
    assert (point.source, point.destination, point.rw, point.propagation) == ("/a", "/b", False, "rslave")
    assert point.makes_source


def test_a_tmpfs_takes_nothing_from_the_host() -> None:
    mount = Mount(type="tmpfs", target="/t", tmpfs_options=TmpfsOptions(size_bytes=5, mode=0o1770))
    (point,) = mount_points(HostConfig(mounts=[mount]))
    assert (point.type, point.source, point.options) == ("tmpfs", "", "mode=1770,size=5")


@pytest.mark.parametrize(
    ("mount", "reason"),
    [
        (Mount(type="bind", source="/a"), "field Target must not be empty"),
        (Mount(type="bind", source="/a", target="b"), "invalid mount path: 'b' mount path must be absolute"),
        (Mount(type="bind", source="/a", target="/b/.."), "invalid specification: destination can't be '/'"),
        (Mount(type="bind", target="/b"), "field Source must not be empty"),
        (Mount(type="bind", source="a", target="/b"), "invalid mount path: 'a' mount path must be absolute"),
        (
            Mount(type="bind", source="/a", target="/b", volume_options=VolumeOptions()),
            "field VolumeOptions must not be specified",
        ),
        (
            Mount(type="bind", source="/a", target="/b", bind_options=BindOptions(propagation="x")),
            "invalid propagation mode: x",
        ),
        (Mount(type="tmpfs", source="/a", target="/b"), "field Source must not be specified"),
        (Mount(type="tmpfs", target="/b", bind_options=BindOptions()), "field BindOptions must not be specified"),
        (Mount(type="floppy", target="/b"), "mount type unknown"),
    ],
)
def test_a_mount_that_means_nothing_is_refused(mount: Mount, reason: str) -> None:
    assert refusal(HostConfig(mounts=[mount])) == f'invalid mount config for type "{mount.type}": {reason}'


@pytest.mark.parametrize(
    "host_config",
    [
        HostConfig(binds=["/a:/x", "/b:/x/"]),
        HostConfig(binds=["/a:/x"], mounts=[Mount(type="bind", source="/b", target="//x")]),
        HostConfig(binds=["/a:/x"], tmpfs={"/x": ""}),
        HostConfig(mounts=[Mount(type="tmpfs", target="/x"), Mount(type="volume", target="/x/")], tmpfs={"/x/": ""}),
    ],
)
def test_one_place_takes_one_mount(host_config: HostConfig) -> None:
    assert refusal(host_config) == "Duplicate mount point: /x"


def test_a_tmpfs_may_be_where_a_mount_is() -> None:
    mount = Mount(type="volume", source="v", target="/x/")
    [wanted] = wanted_mounts(HostConfig(mounts=[mount], tmpfs={"/x": ""}))
    assert (wanted.point.destination, wanted.point.name) == ("/x", "v")


def test_a_container_has_an_end_to_its_mounts() -> None:
    binds = [f"/a:/b{number}" for number in range(MOST_MOUNTS)]
    assert len(wanted_mounts(HostConfig(binds=binds))) == MOST_MOUNTS
    for more in (HostConfig(binds=[*binds, "/a:/c"]), HostConfig(binds=binds, tmpfs={"/t": ""})):
        with pytest.raises(InvalidParameter, match="too many mounts"):
            wanted_mounts(more)
    with pytest.raises(InvalidParameter, match="too many mounts"):
        declared(ContainerConfig(volumes={bind: {} for bind in [*binds, "/c"]}), HostConfig(), [])
