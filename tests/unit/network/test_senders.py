"""From whom packets of VXLAN are taken, in words for nftables."""

import pytest

from husk.errors import InvalidParameter
from husk.network.senders import Senders, difference, ruleset

TWO = Senders(4789, "192.0.2.1", ((4097, frozenset({"192.0.2.2", "192.0.2.3"})), (4098, frozenset())))


def test_each_network_has_its_own_senders():
    text = ruleset("t", TWO)
    assert "add element ip t numbers { 4097, 4098 }" in text
    assert "add element ip t senders { 192.0.2.2 . 4097, 192.0.2.3 . 4097 }" in text
    assert "add element ip t hosts { 192.0.2.1, 192.0.2.2, 192.0.2.3 }" in text
    assert "udp dport 4789" in text


def test_hosts_with_ipv6():
    senders = Senders(4789, "2001:db8::1", ((4097, frozenset({"2001:DB8::2"})),))
    assert "add element ip6 t senders { 2001:db8::2 . 4097 }" in ruleset("t", senders)


def test_a_host_of_the_other_version_of_ip_keeps_no_other_out():
    mixed = Senders(4789, "192.0.2.1", ((4097, frozenset({"192.0.2.2", "2001:db8::2"})),))
    text = ruleset("t", mixed)
    assert "add element ip t senders { 192.0.2.2 . 4097 }" in text and "2001:db8" not in text
    other = Senders(4789, "2001:db8::1", mixed.networks)
    assert "add element ip6 t hosts { 2001:db8::1, 2001:db8::2 }" in ruleset("t", other)


def test_a_change_is_what_differs():
    other = Senders(4789, "192.0.2.1", ((4097, frozenset({"192.0.2.2"})), (4098, frozenset({"192.0.2.9"}))))
    assert difference("t", TWO, other).splitlines() == [
        "delete element ip t senders { 192.0.2.3 . 4097 }",
        "delete element ip t hosts { 192.0.2.3 }",
        "add element ip t senders { 192.0.2.9 . 4098 }",
        "add element ip t hosts { 192.0.2.9 }",
    ]
    assert difference("t", TWO, TWO) == ""


def test_nothing_unvalidated_reaches_a_rule():
    with pytest.raises(ValueError):
        ruleset("t", Senders(4789, "192.0.2.1", ((4097, frozenset({"192.0.2.2 accept"})),)))
    with pytest.raises(InvalidParameter):
        ruleset("t; flush ruleset", TWO)
