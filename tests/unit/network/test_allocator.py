"""Addresses of a network and their holders: nobody's is lost, nobody's is given to two."""

from ipaddress import IPv4Interface, IPv6Interface

import pytest

from husk.errors import Forbidden
from husk.network.allocator import Allocator, subnet_of
from husk.network.endpoint import DEFAULTS, EndpointOptions
from husk.network.sandbox import Lease

GATEWAY, GATEWAY6 = IPv4Interface("10.0.0.1/29"), IPv6Interface("fd00::1/64")


@pytest.fixture
def allocator() -> Allocator:
    return Allocator(subnet_of(GATEWAY, "", GATEWAY), subnet_of(GATEWAY6, "", GATEWAY6), ["10.0.0.2"])


def lease(allocator: Allocator, interface: str, options: EndpointOptions = DEFAULTS) -> Lease:
    address, address6 = allocator.take(options)
    assert address is not None
    made = Lease("/run/x", interface, str(address.ip), 29, "", "", ip6_address=str(address6.ip) if address6 else "")
    allocator.note(made)
    return made


def test_reserved_addresses_and_the_gateways_are_given_to_nobody(allocator):
    assert (lease(allocator, "veth0").ip_address, lease(allocator, "veth1").ip_address) == ("10.0.0.3", "10.0.0.4")


def test_an_endpoint_gets_both_addresses_or_none(allocator):
    lease(allocator, "veth0", EndpointOptions(address6="fd00::9"))
    with pytest.raises(Forbidden):
        allocator.take(EndpointOptions(address="10.0.0.5", address6="fd00::9"))
    assert lease(allocator, "veth1", EndpointOptions(address="10.0.0.5")).ip_address == "10.0.0.5"


def test_a_lease_that_is_freed_twice_leaves_its_successor_alone(allocator):
    first = lease(allocator, "veth0", EndpointOptions(address="10.0.0.5"))
    allocator.free(first)
    successor = lease(allocator, "veth1", EndpointOptions(address="10.0.0.5"))
    allocator.free(first)
    assert allocator.owners["10.0.0.5"] == "veth1" and list(allocator.leases.values()) == [successor]


def test_an_adopted_lease_outside_the_subnets_is_kept_without_its_address(allocator, caplog):
    allocator.adopt(Lease("/run/x", "veth0", "192.168.9.9", 24, "", ""))
    assert "outside the network's subnets" in caplog.text
    assert "veth0" in allocator.leases and not allocator.owners


def test_without_ipv6_wanted_there_is_none(allocator):
    assert lease(allocator, "veth0", EndpointOptions(ipv6=False)).ip6_address == ""


def test_what_is_taken_is_known(allocator: Allocator) -> None:
    given = lease(allocator, "veth0")
    assert (
        allocator.is_taken(given.ip_address) and allocator.is_taken("10.0.0.2") and not allocator.is_taken("10.0.0.5")
    )
    allocator.free(given)
    assert not allocator.is_taken(given.ip_address)
