"""Older clients: what they never asked for does not happen, what they took for granted does."""

import pytest

from husk.api.calls.adapting import MAC_DEPRECATED, adapt
from husk.api.versioning import CURRENT, MINIMUM, Version
from husk.engine.model.container_config import (
    BindOptions,
    ContainerConfig,
    EndpointRequest,
    HealthConfig,
    HostConfig,
    Mount,
    TmpfsOptions,
    VolumeOptions,
)
from husk.errors import InvalidParameter

MAC = "02:42:ac:11:00:55"


def before(version: Version) -> Version:
    return Version(version.major, version.minor - 1)


def host(version: Version, **fields: object) -> HostConfig:
    """A host configuration as a client of that version means it."""
    return adapt(ContainerConfig(), HostConfig(**fields), {}, version).host  # type: ignore[arg-type]


def mount(version: Version, **fields: object) -> Mount:
    return (host(version, mounts=[Mount(**fields)]).mounts or [])[0]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "given", "since", "old"),
    [
        ("auto_remove", True, Version(1, 25), False),
        ("console_size", [10, 20], Version(1, 42), [0, 0]),
        ("annotations", {"a": "b"}, Version(1, 43), None),
    ],
)
def test_fields_that_are_newer_than_the_client_are_ignored(
    field: str, given: object, since: Version, old: object
) -> None:
    assert getattr(host(since, **{field: given}), field) == given
    assert getattr(host(before(since), **{field: given}), field) == old


def test_shared_memory_could_be_shared_by_default_until_1_40() -> None:
    assert host(Version(1, 39)).ipc_mode == "shareable"
    assert host(Version(1, 39), ipc_mode="private").ipc_mode == "private"
    assert host(Version(1, 40)).ipc_mode == ""


@pytest.mark.parametrize(("minor", "v2", "expected"), [(40, False, "host"), (41, False, ""), (40, True, "")])
def test_the_cgroup_namespace_was_the_host_s_on_cgroup_v1_until_1_41(minor: int, v2: bool, expected: str) -> None:
    made = adapt(ContainerConfig(), HostConfig(), {}, Version(1, minor), cgroup_v2=v2).host
    assert made.cgroupns_mode == expected


def test_the_start_interval_of_a_health_check_came_with_1_44() -> None:
    def interval(version: Version) -> int:
        config = ContainerConfig(healthcheck=HealthConfig(test=["CMD", "true"], start_interval=5))
        check = adapt(config, HostConfig(), {}, version).config.healthcheck
        assert check is not None
        return check.start_interval

    assert (interval(Version(1, 43)), interval(Version(1, 44))) == (0, 5)


def test_options_of_bind_mounts() -> None:
    def bind(version: Version, **options: bool) -> BindOptions | None:
        return mount(version, type="bind", source="/a", target="/b", bind_options=BindOptions(**options)).bind_options  # type: ignore[arg-type]

    assert bind(Version(1, 39), non_recursive=True) == BindOptions()
    assert bind(Version(1, 40), non_recursive=True) == BindOptions(non_recursive=True)
    assert bind(Version(1, 41), create_mountpoint=True) == BindOptions()
    assert bind(Version(1, 42), create_mountpoint=True) == BindOptions(create_mountpoint=True)
    assert bind(Version(1, 44), read_only_force_recursive=True) == BindOptions(read_only_force_recursive=True)
    with pytest.raises(InvalidParameter, match=r"ReadOnlyForceRecursive needs API v1\.44"):
        bind(Version(1, 43), read_only_force_recursive=True)


def test_what_is_mounted_in_a_read_only_mount_stays_writable_for_older_clients() -> None:
    old = mount(Version(1, 43), type="bind", source="/a", target="/b", read_only=True)
    assert old.bind_options == BindOptions(read_only_non_recursive=True)
    assert mount(Version(1, 44), type="bind", source="/a", target="/b", read_only=True).bind_options is None


def test_options_of_another_type_of_mount_are_refused_since_1_42() -> None:
    odd = {"type": "bind", "source": "/a", "target": "/b"}
    for options in ({"volume_options": VolumeOptions(no_copy=True)}, {"tmpfs_options": TmpfsOptions(size_bytes=9)}):
        mount(Version(1, 41), **odd, **options)
        with pytest.raises(
            InvalidParameter, match=r'^(Volume|Tmpfs)Options must not be specified on mount type "bind"$'
        ):
            mount(Version(1, 42), **odd, **options)


def test_mounts_that_an_older_client_cannot_mean_are_refused() -> None:
    with pytest.raises(InvalidParameter, match=r"needs API v1\.45"):
        mount(Version(1, 44), type="volume", target="/b", volume_options=VolumeOptions(subpath="x"))
    with pytest.raises(InvalidParameter, match=r"needs API v1\.48"):
        mount(Version(1, 47), type="image", source="i", target="/b")
    mount(Version(1, 48), type="image", source="i", target="/b")


def test_several_networks_at_once_came_with_1_44() -> None:
    networks = {"a": EndpointRequest(), "b": EndpointRequest()}
    adapt(ContainerConfig(), HostConfig(network_mode="a"), networks, Version(1, 44))
    with pytest.raises(InvalidParameter, match="multiple network endpoints: a, b"):
        adapt(ContainerConfig(), HostConfig(network_mode="a"), networks, Version(1, 43))


class TestHardwareAddress:
    @pytest.mark.parametrize("version", [MINIMUM, CURRENT])
    @pytest.mark.parametrize(("mode", "network"), [("", "bridge"), ("default", "bridge"), ("mine", "mine")])
    def test_of_the_container_becomes_that_of_its_endpoint(self, version: Version, mode: str, network: str) -> None:
        found = adapt(ContainerConfig(mac_address=MAC), HostConfig(network_mode=mode), {}, version)
        assert (found.config.mac_address, found.endpoints) == ("", {network: EndpointRequest(mac_address=MAC)})
        assert found.warnings == ([MAC_DEPRECATED] if version == CURRENT else [])

    def test_of_an_endpoint_came_with_1_44(self) -> None:
        for version, kept in ((Version(1, 43), ""), (Version(1, 44), MAC)):
            endpoints = {"bridge": EndpointRequest(mac_address=MAC)}
            found = adapt(ContainerConfig(), HostConfig(), endpoints, version)
            assert found.warnings == [] and found.endpoints["bridge"].mac_address == kept

    def test_must_be_one(self) -> None:
        endpoints = {"bridge": EndpointRequest(mac_address=MAC)}
        with pytest.raises(InvalidParameter, match="must match the endpoint-specific MAC address"):
            adapt(ContainerConfig(mac_address="02:42:ac:11:00:56"), HostConfig(), endpoints, CURRENT)

    def test_of_no_known_endpoint_is_refused(self) -> None:
        with pytest.raises(InvalidParameter, match="NetworkMode must match the identity of a network"):
            adapt(ContainerConfig(mac_address=MAC), HostConfig(network_mode="a"), {"b": EndpointRequest()}, CURRENT)

    @pytest.mark.parametrize("mode", ["host", "none"])
    def test_means_nothing_without_a_network(self, mode: str) -> None:
        found = adapt(ContainerConfig(mac_address=MAC), HostConfig(network_mode=mode), {}, CURRENT)
        assert found.warnings == [MAC_DEPRECATED]
        with pytest.raises(InvalidParameter, match="conflicting options: mac-address and the network mode"):
            adapt(ContainerConfig(mac_address=MAC), HostConfig(network_mode=mode), {}, Version(1, 43))
