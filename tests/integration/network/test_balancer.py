"""The balancer knows when its rules are whole, in the kernel's own words."""

import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import permutations

import pytest

from husk.errors import SystemFault
from husk.kernel.nflisting import Shape
from husk.kernel.nftables import Nftables
from husk.network import integrity
from husk.network.balance import NOTHING, Balance, BalancedPort, Balancer, VirtualAddress

TABLE = "husk-test-lb"
TWO = ("10.0.0.2", "10.0.0.3")
BALANCES = {
    "a port": Balance((), (BalancedPort("tcp", 8089, 80, ("10.0.0.2",)),)),
    "several": Balance(
        (VirtualAddress("lo", "10.9.0.9", TWO), VirtualAddress("lo", "10.9.0.8", ())),
        (
            BalancedPort("tcp", 8089, 80, TWO),
            BalancedPort("udp", 81, 80, ()),
            BalancedPort("udp", 8089, 80, TWO),
            BalancedPort("sctp", 8089, 80, ("10.0.0.2",)),
        ),
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


def test_a_change_leaves_what_writing_all_of_it_would(caplog: pytest.LogCaptureFixture) -> None:
    """The end is the same from every state before it and to every state after it; and the change alone is written."""
    caplog.set_level("DEBUG", "husk.network.balance")
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
    assert not caplog.records


def test_a_change_of_what_somebody_has_removed_writes_all_of_it() -> None:
    balancer = Balancer(TABLE)
    balancer.change(BALANCES["several"])
    subprocess.run(["nft", "delete", "table", "ip", TABLE], check=True)
    balancer.change(BALANCES["tasks on other hosts"])
    assert balancer.intact() and families() == ["ip", "ip6"]


def test_a_change_does_not_hide_what_somebody_has_removed_before() -> None:
    """The rules are looked at a moment after they were removed, and tasks change meanwhile."""
    balancer = Balancer(TABLE)
    balancer.change(BALANCES["a port"])
    whole = listing_of(Balance((), (BalancedPort("tcp", 8089, 80, TWO),)))
    subprocess.run(["nft", "flush", "table", "ip", TABLE], check=True)
    balancer.change(Balance((), (BalancedPort("tcp", 8089, 80, TWO),)))
    assert not balancer.intact()
    balancer.apply()
    assert balancer.intact() and listing() == whole


def listing() -> list[list[str]]:
    """The sets, maps and chains of both tables with their words; neither is listed in an order that matters."""
    found = [subprocess.check_output(["nft", "list", "table", family, TABLE], text=True) for family in families()]
    return sorted(sorted(block.replace(",", " ").split()) for text in found for block in text.split("\n\t}\n"))


@pytest.mark.parametrize("done", [True, False], ids=["done", "not done"])
def test_a_change_that_fails_leaves_nothing_behind_that_nobody_knows_of(
    done: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next wish is fulfilled, whether or not the kernel has carried out the change that failed."""
    before, after = BALANCES["several"], BALANCES["tasks on other hosts"]
    for wanted in (before, after, NOTHING):
        balancer = Balancer(TABLE)
        balancer.change(before)
        run = Nftables.run

        def fail(nftables: Nftables, commands: str, run: Callable[[Nftables, str], str] = run) -> str:
            if done or commands == "list tables\n":
                run(nftables, commands)
            raise SystemFault("nftables: cut off")

        with monkeypatch.context() as patched:
            patched.setattr(Nftables, "run", fail)
            with pytest.raises(SystemFault):
                balancer.change(after)
        balancer.change(wanted)
        somebody_else()
        assert balancer.intact()
        assert listing() == listing_of(wanted)
        balancer.change(NOTHING)


def test_a_change_that_fails_is_made_good_by_who_looks_at_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    balancer = Balancer(TABLE)
    balancer.change(BALANCES["several"])
    with monkeypatch.context() as patched:
        patched.setattr("husk.kernel.nflisting.some_of_shape", refused)
        with pytest.raises(OSError):
            balancer.change(BALANCES["a port"])
    assert not balancer.intact()
    balancer.apply()
    assert balancer.intact() and listing() == listing_of(BALANCES["several"])


def test_what_a_change_costs_does_not_depend_on_other_services(monkeypatch: pytest.MonkeyPatch) -> None:
    services = tuple(VirtualAddress("lo", f"10.9.1.{number}", TWO) for number in range(1, 60))
    balancer = Balancer(TABLE)
    balancer.change(Balance(services))
    monkeypatch.setattr("husk.kernel.nflisting.shape", refused)
    monkeypatch.setattr("husk.kernel.nflisting.elements", refused)
    balancer.change(Balance((VirtualAddress("lo", "10.9.1.1", (*TWO, "10.0.0.4")), *services[1:])))
    balancer.change(Balance(services[1:]))
    assert balancer.intact()


def refused(*_: object) -> object:
    raise OSError(1, "nobody has to look at all of it")


def somebody_else() -> None:
    """So that what there is tells, not what nobody has touched since."""
    for verb in ("add", "delete"):
        subprocess.run(["nft", verb, "table", "ip", "other"], check=True)


def listing_of(balance: Balance) -> list[list[str]]:
    """Return the listing after all of it was written by a balancer that knows of nothing."""
    subprocess.run(["nft", "flush", "ruleset"], check=True)
    Balancer(TABLE).change(balance)
    return listing()
