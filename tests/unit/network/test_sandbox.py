"""A sandbox and its endpoints, with doubles of the kernel: what a lease says, and what is deleted or left alone."""

import errno
from ipaddress import IPv4Address, IPv4Interface, IPv6Interface
from pathlib import Path
from typing import Any, cast

import pytest

from husk.kernel import namespaces, rtnetlink
from husk.kernel.netlink import NetlinkSocket
from husk.network import hardening, sandbox
from husk.network.sandbox import Lease, ParentLink, Wiring

LEASE = Lease("/run/x", "veth-a", "10.0.0.2", 24, "10.0.0.1", "02:42:0a:00:00:02", ip6_address="fd00::2")


def wiring(**changes: Any) -> Wiring:
    own: dict[str, Any] = {"address": IPv4Interface("10.0.0.2/24"), "gateway": IPv4Address("10.0.0.1"), "mtu": 1500}
    return Wiring(bridge="br0", **own | changes)


def test_a_lease_has_all_that_is_needed_to_release_it() -> None:
    made = sandbox._lease(Path("/run/x"), wiring(address6=IPv6Interface("fd00::2/64")), "eth1")
    assert (made.ip_address, made.prefix_len, made.gateway, made.interface) == ("10.0.0.2", 24, "10.0.0.1", "eth1")
    assert (made.ip6_address, made.prefix6_len, made.gateway6) == ("fd00::2", 64, "")
    assert made.host_interface.startswith("veth") and len(made.host_interface) == 15
    other = sandbox._lease(Path("/run/x"), wiring(port_prefix="husk-"), "eth0")
    assert other.host_interface.startswith("husk-") and len(other.host_interface) == 15


def test_a_mac_is_asked_for_or_follows_from_the_address() -> None:
    def mac(**changes: Any) -> str:
        return sandbox._lease(Path("/run/x"), wiring(**changes), "eth0").mac_address

    assert mac() == "02:42:0a:00:00:02" and mac(mac="02:00:00:00:00:01") == "02:00:00:00:00:01"
    assert mac(address=None, gateway=None) == ""
    assert mac(address=None, gateway=None, address6=IPv6Interface("fd00::2/64"))
    assert mac(parent_link=ParentLink("ipvlan", 0)) == "", "it has that of its parent"


def test_the_host_speaks_to_an_endpoint_where_it_has_an_address_itself() -> None:
    assert [str(address) for address in sandbox.host_knows(LEASE, (4, 6))] == ["10.0.0.2", "fd00::2"]
    assert [str(address) for address in sandbox.host_knows(LEASE, (6,))] == ["fd00::2"]
    assert sandbox.host_knows(LEASE, ()) == []


class Kernel:
    def __init__(self) -> None:
        self.deleted: list[str] = []
        self.errors: dict[str, int] = {}

    def attempt(self, messages: list[Any]) -> list[OSError | None]:
        [name] = messages
        self.deleted.append(name)
        return [OSError(self.errors[name], "refused") if name in self.errors else None]

    def __enter__(self) -> "Kernel":
        return self

    def __exit__(self, *_: object) -> None:
        return None


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    made = Kernel()
    monkeypatch.setattr(rtnetlink, "delete_link", lambda name: name)
    monkeypatch.setattr(sandbox, "NetlinkSocket", lambda: made)
    return made


def test_links_that_are_gone_are_no_fault(kernel: Kernel) -> None:
    kernel.errors = {"b": errno.ENODEV}
    sandbox.delete_links(cast(NetlinkSocket, kernel), ["a", "b", "c"])
    assert kernel.deleted == ["a", "b", "c"]
    kernel.errors = {"a": errno.EPERM}
    with pytest.raises(PermissionError):
        sandbox.delete_links(cast(NetlinkSocket, kernel), ["a", "b"])


def test_a_bridge_that_is_gone_has_forgotten_everybody(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten: list[object] = []
    monkeypatch.setattr(hardening, "forget", lambda host, master, addresses: forgotten.extend(addresses))
    sandbox.cut_off("no-such-bridge", [LEASE], [LEASE])
    assert kernel.deleted == ["veth-a"] and forgotten == []
    sandbox.cut_off("lo", [LEASE], [])
    assert [str(address) for address in forgotten] == ["10.0.0.2", "fd00::2"]


def test_an_endpoint_whose_sandbox_is_gone_is_gone(kernel: Kernel, tmp_path: Path) -> None:
    sandbox.unplug(Lease(str(tmp_path / "gone"), "x", "", 0, "", ""))
    assert kernel.deleted == [] and not sandbox.connected(LEASE)


def test_sandboxes_that_nobody_keeps_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    removed: list[str] = []
    monkeypatch.setattr(namespaces, "remove", lambda path: removed.append(path.name))
    sandbox.make_place(tmp_path / "netns")
    for name in ("kept", "left"):
        (tmp_path / "netns" / name).touch()
    sandbox.sweep(tmp_path / "netns", ["/another/way/to/kept"])
    assert removed == ["left"]
