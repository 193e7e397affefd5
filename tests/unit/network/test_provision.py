"""Needs of a network on the host, on doubles of bridge and firewall: made, swept, spared, and taken back."""

from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Interface, IPv6Interface
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from husk.errors import SystemFault
from husk.kernel import rtnetlink
from husk.network import hardening, host, parent, provision, recovery, sandbox
from husk.network.firewall import Firewall
from husk.network.host import BridgePlan, BridgeState
from husk.network.rules import BridgedNetwork
from husk.network.sandbox import Lease, ParentLink
from husk.network.settings import BridgeSettings, Opening

STATE = BridgeState(IPv4Interface("10.9.0.1/24"), 1500, bridge_index=7, mac="02:42:00:00:00:01")
LEASE = Lease("/netns/a", "veth0", "10.9.0.2", 24, "10.9.0.1", "02:42:00:00:00:02", "br0")


class FakeHost:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.netlink = self
        self.by_name: dict[str, Any] = {}
        self.links: dict[int, Any] = {}
        self.plans: list[BridgePlan] = []
        self.done: list[str] = []
        self.state = STATE
        self.fails: Exception | None = None
        self.networks: list[BridgedNetwork] = []
        self.firewall_fails: Exception | None = None
        monkeypatch.setattr(host, "looking", self.looking)
        monkeypatch.setattr(host, "ensure", self.ensure)
        monkeypatch.setattr(host, "remove", lambda interface, owner: self.done.append(f"remove {interface}"))
        monkeypatch.setattr(hardening, "known", lambda netlink, index: ["10.9.0.2", "10.9.0.77"])
        monkeypatch.setattr(parent, "prepare", lambda *given: STATE)
        monkeypatch.setattr(sandbox, "make_place", lambda directory: self.done.append("make_place"))
        for verb in ("sweep_ports", "forget_others", "reattach"):
            monkeypatch.setattr(recovery, verb, lambda *given, verb=verb: self.done.append(verb))

    @contextmanager
    def looking(self) -> Iterator["FakeHost"]:
        yield self

    def ensure(self, plan: BridgePlan, around: object) -> BridgeState:
        self.plans.append(plan)
        if self.fails is not None:
            raise self.fails
        return self.state

    def add_network(self, network: BridgedNetwork) -> None:
        if self.firewall_fails is not None:
            raise self.firewall_fails
        self.networks.append(network)

    def remove_network(self, interface: str) -> None:
        self.done.append(f"rules of {interface}")

    @property
    def firewall(self) -> Firewall:
        return cast(Firewall, self)


@pytest.fixture
def around(monkeypatch: pytest.MonkeyPatch) -> FakeHost:
    return FakeHost(monkeypatch)


def settings(**changes: Any) -> BridgeSettings:
    return BridgeSettings("br0", "ours", Path("/netns"), **changes)


def test_a_new_bridge_has_no_ports_to_sweep(around: FakeHost) -> None:
    assert provision.prepare([Opening(settings(), "10.9.0.0/24", [LEASE])], around.firewall) == [STATE]
    assert around.done == ["make_place", "reattach"]
    [plan] = around.plans
    assert (plan.remembered, plan.in_use) == ("10.9.0.0/24", True)
    [network] = around.networks
    assert (network.interface, str(network.subnet)) == ("br0", "10.9.0.0/24")


def test_one_that_was_there_is_rid_of_what_no_lease_owns(around: FakeHost) -> None:
    around.by_name["br0"] = SimpleNamespace(index=7)
    provision.prepare([Opening(settings(), None, [])], around.firewall)
    assert around.done == ["make_place", "sweep_ports", "forget_others", "reattach"]


def test_while_a_record_cannot_be_read_nothing_is_swept_and_its_address_not_given_away(around: FakeHost) -> None:
    around.by_name["br0"] = SimpleNamespace(index=7)
    [state] = provision.prepare([Opening(settings(), None, [LEASE], spare=True)], around.firewall)
    assert state.taken == ("10.9.0.77",) and "sweep_ports" not in around.done


def test_a_bridge_without_its_rules_goes_again_if_it_is_new(around: FakeHost) -> None:
    around.firewall_fails = SystemFault("nft says no")
    with pytest.raises(SystemFault):
        provision.prepare([Opening(settings(), None, [])], around.firewall)
    assert around.done[-1] == "remove br0"
    around.by_name["br0"] = SimpleNamespace(index=7)
    with pytest.raises(SystemFault):
        provision.prepare([Opening(settings(), None, [])], around.firewall)
    assert around.done.count("remove br0") == 1, "one that containers may be on stays"


def test_what_the_host_refuses_names_the_interface(around: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    around.fails = OSError(1, "Operation not permitted")
    with pytest.raises(SystemFault, match=r"bridge br0 cannot be set up: .*not permitted"):
        provision.prepare([Opening(settings(), None, [])], around.firewall)

    def refuse(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(parent, "prepare", refuse)
    on_parent = settings(parent_link=ParentLink("macvlan", 4))
    with pytest.raises(SystemFault, match="parent interface br0 cannot be set up"):
        provision.prepare([Opening(on_parent, None, [])], around.firewall)


def test_a_network_on_a_parent_has_no_rules(around: FakeHost) -> None:
    on_parent = settings(parent_link=ParentLink("macvlan", 4))
    assert provision.prepare([Opening(on_parent, None, [])], around.firewall) == [STATE]
    provision.remove(on_parent, around.firewall)
    provision.remove(settings(), around.firewall)
    assert around.networks == [] and around.done[1:] == ["remove br0", "remove br0", "rules of br0"]


def test_a_bridge_that_somebody_deleted_is_made_as_it_was(around: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    class Netlink:
        def __enter__(self) -> "Netlink":
            return self

        def __exit__(self, *_: object) -> None:
            return None

        def execute(self, message: str) -> None:
            around.done.append(message)

    monkeypatch.setattr(provision, "NetlinkSocket", Netlink)
    monkeypatch.setattr(rtnetlink, "set_mac", lambda interface, mac: f"mac {mac}")
    provision.mend(settings(), STATE, [LEASE], around.firewall)
    assert around.plans[-1].bip == "10.9.0.1/24" and not any("mac" in done for done in around.done)
    around.state = STATE._replace(mac="02:42:ff:ff:ff:ff")
    assert provision.mend(settings(), STATE, [LEASE], around.firewall).mac == STATE.mac
    assert f"mac {STATE.mac}" in around.done, "containers know their gateway by it"


def test_where_the_host_has_an_address() -> None:
    both = STATE._replace(gateway6=IPv6Interface("fd00::1/64"))
    assert provision.host_versions(settings(), both) == {4, 6}
    assert provision.host_versions(settings(bare=frozenset({4})), both) == {6}
    assert provision.host_versions(settings(), STATE._replace(gateway=None)) == frozenset()
    assert provision.index_of("no-such-interface") == 0 and provision.index_of("lo") > 0
