"""The addresses of this very host."""

from ipaddress import ip_address

from husk.network import own_addresses


def test_the_addresses_of_an_interface() -> None:
    assert ip_address("127.0.0.1") in (own_addresses.of_interface("lo") or [])
    assert own_addresses.of_interface("no-such-thing") is own_addresses.of_interface("a\0b") is None


def test_the_address_that_leads_out() -> None:
    assert ip_address(own_addresses.outgoing())


def test_which_addresses_are_this_hosts() -> None:
    assert own_addresses.is_own("127.0.0.1")
    assert not any(own_addresses.is_own(address) for address in ("", "0.0.0.0", "::", "localhost"))
    assert not own_addresses.is_own("192.0.2.77") and not own_addresses.is_own("2001:db8::77")
