"""Who has which address of a network: nobody's is lost, nobody's is given to two."""

from ipaddress import IPv4Interface, IPv6Interface

import pytest

from husk.errors import Forbidden
from husk.network.ledger import Ledger, subnet_of
from husk.network.sandbox import Lease
from husk.network.wish import ANYTHING, Wish

GATEWAY, GATEWAY6 = IPv4Interface("10.0.0.1/29"), IPv6Interface("fd00::1/64")


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(subnet_of(GATEWAY, "", GATEWAY), subnet_of(GATEWAY6, "", GATEWAY6), ["10.0.0.2"])


def lease(ledger: Ledger, interface: str, wish: Wish = ANYTHING) -> Lease:
    address, address6 = ledger.take(wish)
    assert address is not None
    made = Lease("/run/x", interface, str(address.ip), 29, "", "", ip6_address=str(address6.ip) if address6 else "")
    ledger.note(made)
    return made


def test_reserved_addresses_and_the_gateways_are_given_to_nobody(ledger):
    assert (lease(ledger, "veth0").ip_address, lease(ledger, "veth1").ip_address) == ("10.0.0.3", "10.0.0.4")


def test_an_endpoint_gets_both_addresses_or_none(ledger):
    lease(ledger, "veth0", Wish(address6="fd00::9"))
    with pytest.raises(Forbidden):
        ledger.take(Wish(address="10.0.0.5", address6="fd00::9"))
    assert lease(ledger, "veth1", Wish(address="10.0.0.5")).ip_address == "10.0.0.5"


def test_a_lease_that_is_freed_twice_leaves_its_successor_alone(ledger):
    first = lease(ledger, "veth0", Wish(address="10.0.0.5"))
    ledger.free(first)
    successor = lease(ledger, "veth1", Wish(address="10.0.0.5"))
    ledger.free(first)
    assert ledger.owners["10.0.0.5"] == "veth1" and list(ledger.leases.values()) == [successor]


def test_an_adopted_lease_outside_the_subnets_is_kept_without_its_address(ledger, caplog):
    ledger.adopt(Lease("/run/x", "veth0", "192.168.9.9", 24, "", ""))
    assert "outside the network's subnets" in caplog.text
    assert "veth0" in ledger.leases and not ledger.owners


def test_without_ipv6_wanted_there_is_none(ledger):
    assert lease(ledger, "veth0", Wish(ipv6=False)).ip6_address == ""
