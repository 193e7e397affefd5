"""The rules that share connections out."""

import ipaddress

import pytest

from husk.errors import InvalidParameter
from husk.network.balance import NOTHING, Balance, BalancedPort, VirtualAddress, changed, ruleset


def rules(balance: Balance) -> list[str]:
    return [line for line in ruleset("t", balance).splitlines() if " balance " in line and "add rule" in line]


def test_nothing_to_balance_is_no_rule():
    assert [line for line in rules(NOTHING) if "dnat" in line] == []


def test_each_connection_gets_the_next_target():
    balance = Balance(
        (VirtualAddress("br0", "10.0.0.9", ("10.0.0.2", "10.0.0.3")),),
        (BalancedPort("udp", 53, 5353, ("10.0.0.2", "10.0.0.3")),),
    )
    assert rules(balance) == [
        "add rule ip t balance ip daddr 10.0.0.9 dnat ip to numgen inc mod 2 map { 0 : 10.0.0.2, 1 : 10.0.0.3 }",
        "add rule ip t balance fib daddr type local udp dport 53 dnat ip to numgen inc mod 2 map "
        "{ 0 : 10.0.0.2 . 5353, 1 : 10.0.0.3 . 5353 }",
    ]


def test_one_target_needs_no_choice():
    balance = Balance((), (BalancedPort("tcp", 80, 8080, ("10.0.0.2",)),))
    assert rules(balance) == ["add rule ip t balance fib daddr type local tcp dport 80 dnat ip to 10.0.0.2:8080"]


def test_an_address_without_targets_is_refused_to_all():
    text = ruleset("t", Balance((VirtualAddress("br0", "10.0.0.9", ()),)))
    assert "add element ip t virtual { 10.0.0.9 }" in text and "daddr @virtual reject" in text
    assert "dnat ip to" not in text


def test_nothing_unvalidated_reaches_a_rule():
    with pytest.raises(ValueError):
        ruleset("t", Balance((VirtualAddress("br0", "1.2.3.4 accept", ()),)))
    with pytest.raises(InvalidParameter):
        ruleset("t; flush ruleset", NOTHING)


def test_whose_conversations_must_find_their_way_anew():
    before = Balance(
        (VirtualAddress("br0", "10.0.0.9", ("10.0.0.2", "10.0.0.3")), VirtualAddress("br0", "10.0.0.8", ("10.0.0.4",))),
        (BalancedPort("udp", 53, 53, ("10.0.0.2",)), BalancedPort("tcp", 80, 80, ("10.0.0.2",))),
    )
    assert changed(before, before) == (set(), set())
    assert changed(NOTHING, before) == ({53}, set()), "until now they came to the host itself"
    after = Balance(
        (VirtualAddress("br0", "10.0.0.9", ("10.0.0.3", "10.0.0.5")), before.addresses[1]),
        (BalancedPort("udp", 53, 53, ("10.0.0.3",)), BalancedPort("tcp", 80, 80, ("10.0.0.3",))),
    )
    assert changed(before, after) == ({53}, {ipaddress.IPv4Address("10.0.0.9")})
    assert changed(before, NOTHING) == ({53}, {ipaddress.IPv4Address("10.0.0.9"), ipaddress.IPv4Address("10.0.0.8")})


def test_addresses_of_each_kind_have_a_table_of_their_own():
    both = Balance(
        (VirtualAddress("br0", "10.0.0.9", ("10.0.0.2",)), VirtualAddress("br0", "fd00::9", ("fd00::2", "fd00::3")))
    )
    assert "fd00" not in ruleset("t", both)
    six = ruleset("t", both, "ip6")
    assert "10.0.0" not in six
    assert "add element ip6 t virtual { fd00::9 }" in six
    assert "dnat ip6 to numgen inc mod 2 map { 0 : fd00::2, 1 : fd00::3 }" in six


def test_what_goes_to_other_hosts_comes_from_this_hosts_own_address():
    balance = Balance((), (), (("10.0.0.3", "10.0.0.253"), ("fd00::3", "fd00::fd")))
    assert "add element ip t sources { 10.0.0.3 : 10.0.0.253 }" in ruleset("t", balance)
    assert "fd00" not in ruleset("t", balance)
    assert "add element ip6 t sources { fd00::3 : fd00::fd }" in ruleset("t", balance, "ip6")
