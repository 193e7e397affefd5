"""Settings of interfaces and entries that nobody can claim, which keep containers from changing the host."""

import errno
from ipaddress import ip_address
from types import SimpleNamespace
from typing import Any, cast

import pytest

from husk.kernel import rtaddresses, sysctl
from husk.kernel.netlink import NetlinkSocket
from husk.network import hardening


class Settings:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.values: dict[str, str] = {}
        self.order: list[tuple[str, str]] = []
        self.fails: dict[str, OSError] = {}
        monkeypatch.setattr(sysctl, "write", self.write)
        monkeypatch.setattr(sysctl, "read", self.read)

    def write(self, path: str, value: str, root: int | None = None) -> None:
        if (error := next((error for part, error in self.fails.items() if part in path), None)) is not None:
            raise error
        self.values[path] = value
        self.order.append((path.rpartition("/")[2], value))

    def read(self, path: str) -> str:
        if path not in self.values:
            raise FileNotFoundError(path)
        return self.values[path]


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Settings:
    return Settings(monkeypatch)


def test_a_bridge_learns_nothing_from_those_behind_it(settings: Settings) -> None:
    hardening.bridge("br0", ipv6=False)
    for name, value in (("ipv6/conf/br0/accept_ra", "0"), ("ipv6/conf/br0/disable_ipv6", "1"),
                        ("ipv4/conf/br0/rp_filter", "1"), ("ipv4/conf/br0/accept_redirects", "0")):  # fmt: skip
        assert settings.values[f"net/{name}"] == value


def test_one_that_has_heard_routers_forgets_them(settings: Settings) -> None:
    settings.values["net/ipv6/conf/br0/accept_ra"] = "1"
    hardening.bridge("br0", ipv6=True)
    states = [value for name, value in settings.order if name == "disable_ipv6"]
    assert states == ["1", "0"], "off and on again: what was heard goes"
    assert not hardening.listens("br0")
    settings.order.clear()
    hardening.bridge("br0", ipv6=True)
    assert [value for name, value in settings.order if name == "disable_ipv6"] == ["0"]


def test_a_port_is_no_way_to_the_host_and_a_parent_keeps_its_ipv6(settings: Settings) -> None:
    hardening.port("veth0")
    hardening.parent("eth0")
    assert settings.values["net/ipv6/conf/veth0/disable_ipv6"] == "1"
    assert "net/ipv6/conf/eth0/disable_ipv6" not in settings.values
    assert settings.values["net/ipv6/conf/eth0/accept_ra"] == "0"


def test_a_kernel_without_ipv6_is_no_fault_and_any_other_is_told(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.fails = {"ipv6": FileNotFoundError(), "rp_filter": PermissionError(1, "Operation not permitted")}
    hardening.bridge("br0", ipv6=False)
    assert settings.values["net/ipv4/conf/br0/arp_ignore"] == "1"
    assert caplog.text.count("cannot be set") == 1 and "rp_filter of interface br0" in caplog.text
    assert not hardening.listens("br0")


def test_an_endpoint_is_known_by_its_mac_and_all_its_addresses() -> None:
    addresses = [ip_address("10.0.0.2"), ip_address("fd00::2")]
    assert len(hardening.static_entries(7, 9, "02:42:00:00:00:02", addresses)) == 3
    assert hardening.static_entries(7, 9, "", addresses) == []


class FakeNetlink:
    def __init__(self) -> None:
        self.entries: dict[int, list[Any]] = {4: [], 6: []}
        self.without_ipv6 = False
        self.deleted = 0
        self.error: OSError | None = None

    def dump(self, message: Any) -> list[Any]:
        if message == 6 and self.without_ipv6:
            raise OSError(errno.EOPNOTSUPP, "not supported")
        return self.entries[message]

    def attempt(self, messages: list[Any]) -> list[OSError | None]:
        self.deleted += len(messages)
        return [self.error for _ in messages]


@pytest.fixture
def netlink(monkeypatch: pytest.MonkeyPatch) -> FakeNetlink:
    monkeypatch.setattr(rtaddresses, "list_neighbours", lambda version, index: version)
    monkeypatch.setattr(rtaddresses, "parse_neighbour", lambda entry: entry)
    made = FakeNetlink()
    for text, index, permanent in (
        ("10.0.0.2", 7, True),
        ("10.0.0.3", 7, True),
        ("10.0.0.4", 7, False),
        ("10.0.0.5", 8, True),
    ):
        entry = SimpleNamespace(address=ip_address(text), index=index, permanent=permanent, told=0)
        made.entries[4].append(entry)
    return made


def test_after_a_crash_only_what_is_still_somebodys_stays(netlink: FakeNetlink) -> None:
    socket = cast(NetlinkSocket, netlink)
    assert [str(address) for address in hardening.known(socket, 7)] == ["10.0.0.2", "10.0.0.3"]
    hardening.forget_others(socket, 7, [ip_address("10.0.0.2")])
    assert netlink.deleted == 1


def test_what_was_told_of_other_hosts_is_left_alone(netlink: FakeNetlink) -> None:
    netlink.entries[4][1].told = rtaddresses.TOLD_OF_PEER
    assert [str(address) for address in hardening.known(cast(NetlinkSocket, netlink), 7)] == ["10.0.0.2"]


def test_what_is_gone_already_is_no_fault(netlink: FakeNetlink) -> None:
    socket = cast(NetlinkSocket, netlink)
    netlink.error = OSError(errno.ENOENT, "gone")
    hardening.forget(socket, 7, [ip_address("10.0.0.2")])
    netlink.error = OSError(errno.EPERM, "not permitted")
    with pytest.raises(PermissionError):
        hardening.forget(socket, 7, [ip_address("10.0.0.2")])
    netlink.without_ipv6 = True
    assert len(hardening.known(socket, 7)) == 2
