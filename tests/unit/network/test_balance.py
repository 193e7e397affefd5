"""The rules that share connections out."""

import ipaddress

import pytest

from husk.errors import InvalidParameter
from husk.network.balance import NOTHING, Balance, BalancedPort, VirtualAddress, ruleset


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
    assert "dnat" not in text


def test_nothing_unvalidated_reaches_a_rule():
    with pytest.raises(ipaddress.AddressValueError):
        ruleset("t", Balance((VirtualAddress("br0", "1.2.3.4 accept", ()),)))
    with pytest.raises(InvalidParameter):
        ruleset("t; flush ruleset", NOTHING)
