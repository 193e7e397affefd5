"""Does the balancer know when its rules are whole, in the kernel's own words?"""

import subprocess
from collections import Counter
from collections.abc import Mapping
from itertools import permutations

import pytest

from husk.kernel.nflisting import Shape
from husk.network import integrity
from husk.network.balance import NOTHING, Balance, BalancedPort, Balancer, VirtualAddress

TABLE = "husk-test-lb"
TWO = ("10.0.0.2", "10.0.0.3")
BALANCES = {
    "a port": Balance((), (BalancedPort("tcp", 8089, 80, ("10.0.0.2",)),)),
    "several": Balance(
        (VirtualAddress("lo", "10.9.0.9", TWO), VirtualAddress("lo", "10.9.0.8", ())),
        (BalancedPort("tcp", 8089, 80, TWO), BalancedPort("udp", 81, 80, ())),
    ),
    "both kinds of addresses": Balance(
        (VirtualAddress("lo", "10.9.0.9", TWO), VirtualAddress("lo", "fd00::9", ("fd00::2", "fd00::3"))), ()
    ),
    "tasks on other hosts": Balance(
        (VirtualAddress("lo", "10.9.0.9", TWO), VirtualAddress("lo", "fd00::9", ("fd00::2",))),
        (),
        (("10.0.0.3", "10.0.0.253"), ("fd00::2", "fd00::fd")),
    ),
    "IPv6 alone": Balance((VirtualAddress("lo", "fd00::9", ("fd00::2",)),), ()),
}


def families() -> list[str]:
    lines = subprocess.check_output(["nft", "list", "tables"], text=True).splitlines()
    return [line.split()[1] for line in lines if line.endswith(TABLE)]


@pytest.mark.parametrize("verb", ["delete", "flush"])
@pytest.mark.parametrize("balance", BALANCES.values(), ids=BALANCES)
def test_what_is_missing_is_seen_and_mended(balance: Balance, verb: str) -> None:
    balancer = Balancer(TABLE)
    balancer.change(balance)
    assert balancer.intact()
    for family in families():
        subprocess.run(["nft", verb, "table", family, TABLE], check=True)
        assert not balancer.intact()
        balancer.apply()
        assert balancer.intact()
    balancer.change(NOTHING)
    assert balancer.intact() and families() == []


@pytest.mark.parametrize("verb", ["delete", "flush"])
def test_what_goes_missing_while_it_is_written(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    balancer = Balancer(TABLE)
    look = integrity.look_for

    def look_too_late(table: str, rules: Mapping[str, Counter[str]]) -> dict[str, Shape]:
        subprocess.run(["nft", verb, "table", "ip", TABLE], check=True)
        return look(table, rules)

    with monkeypatch.context() as patched:
        patched.setattr(integrity, "look_for", look_too_late)
        balancer.change(BALANCES["a port"])
    assert not balancer.intact()
    balancer.apply()
    assert balancer.intact()


def test_a_change_leaves_what_writing_all_of_it_would() -> None:
    """Whatever was there before, and whatever comes after it."""
    for before, after in permutations([*BALANCES.values(), NOTHING], 2):
        balancer = Balancer(TABLE)
        balancer.change(before)
        balancer.change(after)
        # Told by what the kernel holds, not by what nobody has touched since.
        subprocess.run(["nft", "add", "table", "ip", "other"], check=True)
        subprocess.run(["nft", "delete", "table", "ip", "other"], check=True)
        assert balancer.intact()
        changed = listing()
        balancer.remove()
        Balancer(TABLE).change(after)
        assert listing() == changed
        balancer.remove()


def test_a_change_of_what_somebody_has_removed_writes_all_of_it() -> None:
    balancer = Balancer(TABLE)
    balancer.change(BALANCES["several"])
    subprocess.run(["nft", "delete", "table", "ip", TABLE], check=True)
    balancer.change(BALANCES["tasks on other hosts"])
    assert balancer.intact() and families() == ["ip", "ip6"]


def listing() -> list[str]:
    """The lines of both tables; elements and chains are listed in no order that matters."""
    found = [subprocess.check_output(["nft", "list", "table", family, TABLE], text=True) for family in families()]
    return sorted(word for text in found for word in text.replace("elements = {", "").replace("}", "").split(","))
