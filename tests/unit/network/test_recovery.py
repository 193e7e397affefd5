"""After a crash: ports that no lease owns go, those of leases are on their bridge again, and others' are left alone."""

import errno
import socket
from types import SimpleNamespace
from typing import Any, cast

import pytest

from husk.kernel.netlink import NetlinkSocket
from husk.network import hardening, recovery
from husk.network.sandbox import Lease

LEASE = Lease("/netns/a", "veth-a", "10.9.0.2", 24, "10.9.0.1", "02:42:00:00:00:02", ip6_address="fd00::2")


class FakeNetlink:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done: list[str] = []
        self.error: OSError | None = None
        monkeypatch.setattr(hardening, "port", lambda name, root: None)
        monkeypatch.setattr(socket, "if_nametoindex", lambda name: 9)

    def attempt(self, messages: list[Any]) -> list[OSError | None]:
        self.done += [message.what for message in messages]
        return [self.error for _ in messages]

    def execute(self, *messages: Any) -> None:
        if self.error is not None:
            raise self.error
        self.done += [message.what for message in messages]

    @property
    def socket(self) -> NetlinkSocket:
        return cast(NetlinkSocket, self)


@pytest.fixture
def netlink(monkeypatch: pytest.MonkeyPatch) -> FakeNetlink:
    return FakeNetlink(monkeypatch)


def link(name: str, master: int = 7, kind: str = "veth") -> Any:
    return SimpleNamespace(name=name, master=master, kind=kind)


def test_only_veths_of_ours_on_this_bridge_go(netlink: FakeNetlink) -> None:
    links = [link("veth-a"), link("veth-b"), link("veth-c", master=8), link("eth1", kind="device"), link("tap0")]
    recovery.sweep_ports(netlink.socket, links, 7, [LEASE])
    assert netlink.done == ["delete interface veth-b"]
    netlink.error = OSError(errno.ENODEV, "gone")
    recovery.sweep_ports(netlink.socket, links, 7, [LEASE])
    netlink.error = OSError(errno.EPERM, "not permitted")
    with pytest.raises(PermissionError):
        recovery.sweep_ports(netlink.socket, links, 7, [LEASE])


def test_a_lease_is_on_its_bridge_again(netlink: FakeNetlink) -> None:
    recovery.reattach(netlink.socket, {"veth-a": link("veth-a", master=3)}, 7, [LEASE], False, (4, 6))
    assert netlink.done[0] == "attach veth-a to its bridge"
    before = len(netlink.done)
    recovery.reattach(netlink.socket, {"veth-a": link("veth-a")}, 7, [LEASE], False, (4, 6))
    assert "attach veth-a to its bridge" not in netlink.done[before:]
    recovery.reattach(netlink.socket, {}, 7, [LEASE], False, (4, 6))


def test_an_interface_that_goes_at_that_moment_is_no_fault(
    netlink: FakeNetlink, monkeypatch: pytest.MonkeyPatch
) -> None:
    netlink.error = OSError(errno.ENODEV, "gone")
    monkeypatch.setattr(socket, "if_nameindex", lambda: [(1, "lo")])
    recovery.reattach(netlink.socket, {"veth-a": link("veth-a")}, 7, [LEASE], False, (4,))
    monkeypatch.setattr(socket, "if_nameindex", lambda: [(1, "lo"), (9, "veth-a")])
    with pytest.raises(OSError, match="gone"):
        recovery.reattach(netlink.socket, {"veth-a": link("veth-a")}, 7, [LEASE], False, (4,))


def test_only_the_addresses_of_leases_are_still_somebodys(
    netlink: FakeNetlink, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[str] = []
    monkeypatch.setattr(hardening, "forget_others", lambda host, master, keep: kept.extend(map(str, keep)))
    recovery.forget_others(netlink.socket, 7, [LEASE])
    assert kept == ["10.9.0.2", "fd00::2"]
