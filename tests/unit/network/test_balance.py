"""The rules that share connections out."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.errors import InvalidParameter
from husk.network.balance import NOTHING, Balance, BalancedPort, VirtualAddress, changed, difference, reslot, ruleset


def written(balance: Balance, family: str = "ip") -> list[str]:
    """The commands that go beyond an empty table."""
    empty = ruleset("t", NOTHING, family)
    text = ruleset("t", balance, family)
    assert text.startswith(empty)
    return text.removeprefix(empty).splitlines()


def test_nothing_to_balance_leads_nowhere():
    assert written(NOTHING) == [] and "dnat ip to" not in ruleset("t", NOTHING)


def test_each_connection_gets_the_next_target():
    balance = Balance(
        (VirtualAddress("br0", "10.0.0.9", ("10.0.0.2", "10.0.0.3")),),
        (BalancedPort("udp", 53, 5353, ("10.0.0.2", "10.0.0.3")),),
    )
    commands = written(balance)
    assert "add rule ip t to-0a000009 dnat ip to ip daddr . numgen inc mod 2 map @targets" in commands
    assert "add element ip t targets { 10.0.0.9 . 0 : 10.0.0.2, 10.0.0.9 . 1 : 10.0.0.3 }" in commands
    port = "add rule ip t at-udp-53 meta l4proto udp dnat ip to udp dport . numgen inc mod 2"
    assert f"{port} map @udp_targets" in commands
    targets = "53 . 0 : 10.0.0.2 . 5353, 53 . 1 : 10.0.0.3 . 5353"
    assert f"add element ip t udp_targets {{ {targets} }}" in commands
    assert "add element ip t held { udp . 53 }" in commands


def test_an_address_is_asked_for_on_its_own_bridge_alone():
    text = ruleset("t", Balance((VirtualAddress("br0", "10.0.0.9", ("10.0.0.2",)),)))
    assert 'add element ip t places { "br0" . 10.0.0.9 }' in text
    assert "daddr @virtual iifname . ip daddr != @places drop" in text


def test_an_address_without_targets_is_refused_and_no_port_answers_in_its_place():
    text = ruleset("t", Balance((VirtualAddress("br0", "10.0.0.9", ()),)))
    assert "add element ip t virtual { 10.0.0.9 }" in text and "daddr @virtual ct direction original reject" in text
    assert [line for line in text.splitlines() if "dnat ip to" in line] == [
        "add rule ip t to-0a000009 dnat ip to 10.0.0.9"
    ]


def test_a_port_without_targets_is_the_hosts_own():
    assert written(Balance((), (BalancedPort("tcp", 80, 8080, ()),))) == []


def of_many(services: int, targets: int) -> Balance:
    return Balance(
        tuple(
            VirtualAddress("br0", f"10.1.{number}.0", tuple(f"10.2.{number}.{one}" for one in range(targets)))
            for number in range(services)
        )
    )


def test_a_task_is_one_element_and_one_rule_whatever_else_there_is():
    counts = set()
    for services, targets in ((2, 3), (40, 3), (2, 60)):
        before = of_many(services, targets)
        one = before.addresses[1]
        for changed_targets in ((*one.targets, "10.9.0.1"), one.targets[1:]):
            after = Balance((before.addresses[0], VirtualAddress("br0", one.address, changed_targets)))
            after = Balance((*after.addresses, *before.addresses[2:]))
            commands = difference("t", before, after)
            assert commands.count("add rule") == 1
            counts.add((len(commands.splitlines()), commands.count(" : ")))
    # One that goes leaves its number to the last one.
    assert counts == {(3, 1), (4, 1)}
    assert difference("t", after, after) == ""


def test_a_task_that_is_replaced_is_one_element():
    before, after = (
        Balance((VirtualAddress("br0", "10.0.0.9", targets),))
        for targets in (("10.0.0.2", "10.0.0.3"), ("10.0.0.3", "10.0.0.4"))
    )
    assert difference("t", before, after).splitlines() == [
        "delete element ip t targets { 10.0.0.9 . 0 }",
        "add element ip t targets { 10.0.0.9 . 0 : 10.0.0.4 }",
    ]


@given(st.lists(st.sampled_from("abcdef"), unique=True), st.lists(st.sampled_from("abcdef"), unique=True))
def test_targets_keep_their_numbers(former, wanted):
    found = reslot(former, wanted)
    assert sorted(found) == sorted(wanted)
    for number, target in enumerate(former[: len(wanted)]):
        if target in wanted:
            assert found[number] == target


def test_a_service_that_goes_takes_all_of_its_own_along():
    before = Balance((VirtualAddress("br0", "10.0.0.9", ("10.0.0.2",)),), (BalancedPort("tcp", 80, 80, ("10.0.0.2",)),))
    assert difference("t", before, NOTHING).splitlines() == [
        "delete element ip t virtual { 10.0.0.9 }",
        'delete element ip t places { "br0" . 10.0.0.9 }',
        "delete element ip t held { tcp . 80 }",
        "delete element ip t services { 10.0.0.9 }",
        "delete element ip t targets { 10.0.0.9 . 0 }",
        "delete element ip t ports { tcp . 80 }",
        "delete element ip t tcp_targets { 80 . 0 }",
        "flush chain ip t to-0a000009",
        "delete chain ip t to-0a000009",
        "flush chain ip t at-tcp-80",
        "delete chain ip t at-tcp-80",
    ]


def test_nothing_unvalidated_reaches_a_rule():
    with pytest.raises(ValueError):
        ruleset("t", Balance((VirtualAddress("br0", "1.2.3.4 accept", ()),)))
    with pytest.raises(ValueError):
        ruleset("t", Balance((), (BalancedPort("tcp accept", 80, 80, ("10.0.0.2",)),)))
    with pytest.raises(InvalidParameter):
        ruleset("t", Balance((VirtualAddress("br0 accept", "1.2.3.4", ()),)))
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
    assert "add element ip6 t targets { fd00::9 . 0 : fd00::2, fd00::9 . 1 : fd00::3 }" in six


def test_what_goes_to_other_hosts_comes_from_this_hosts_own_address():
    balance = Balance((), (), (("10.0.0.3", "10.0.0.253"), ("fd00::3", "fd00::fd")))
    assert "add element ip t sources { 10.0.0.3 : 10.0.0.253 }" in ruleset("t", balance)
    assert "fd00" not in ruleset("t", balance)
    assert "add element ip6 t sources { fd00::3 : fd00::fd }" in ruleset("t", balance, "ip6")
    assert "add element ip t own { 10.0.0.253 }" in ruleset("t", balance), "and nobody begins a connection to that"
