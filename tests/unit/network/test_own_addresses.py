"""The addresses of this very host."""

from ipaddress import ip_address

from husk.network import own_addresses


def test_the_addresses_of_an_interface() -> None:
    assert ip_address("127.0.0.1") in (own_addresses.of_interface("lo") or [])
    assert own_addresses.of_interface("no-such-thing") is None


def test_the_address_that_leads_out() -> None:
    assert ip_address(own_addresses.outgoing())
