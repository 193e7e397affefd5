"""A table that cannot be looked at is neither whole nor damaged: whoever asks hears of it, and asks again."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import IPv4Network, IPv6Network
from itertools import count
from typing import Any

import pytest

from husk.kernel import nflisting
from husk.network.balance import Balance, Balancer, VirtualAddress
from husk.network.firewall import Firewall
from husk.network.guardian import Guarded
from husk.network.ports import PublishedPort
from husk.network.rules import BridgedNetwork
from husk.network.senders import SenderRules, Senders
from husk.network.wireguard.fence import Fence

TABLE = "husk-test"


def firewall() -> Firewall:
    made = Firewall(TABLE)
    made.add_network(BridgedNetwork("br0", IPv4Network("10.0.0.0/24"), subnet6=IPv6Network("fd00::/64")))
    made.apply()
    return made


def senders() -> SenderRules:
    made = SenderRules(TABLE)
    made.change(Senders(4789, "192.0.2.1", ((4097, frozenset({"192.0.2.2"})),)))
    return made


def balancer() -> Balancer:
    made = Balancer(TABLE)
    made.change(Balance((VirtualAddress("lo", "10.9.1.1", ("10.0.0.2",)),)))
    return made


def fence() -> Fence:
    made = Fence(TABLE)
    made.put("wg-husk", "fe80::1", 4789)
    return made


def somebody_else() -> None:
    """Change rules of others, so that nobody knows without a look that ours are whole."""
    for verb in ("add", "delete"):
        subprocess.run(["nft", verb, "table", "ip", "other"], check=True)


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, when: Callable[[], bool]) -> Iterator[None]:
    def dump(netlink: object, message: Any, real: Any = nflisting._dump) -> object:
        if when():
            raise OSError(105, "No buffer space available")
        return real(netlink, message)

    with monkeypatch.context() as patched:
        patched.setattr(nflisting, "_dump", dump)
        yield


def listed() -> str:
    return subprocess.check_output(["nft", "list", "ruleset"], text=True)


@pytest.mark.parametrize("make", [firewall, senders, balancer, fence])
def test_each_listing_that_fails_is_told(monkeypatch: pytest.MonkeyPatch, make: Callable[[], Guarded]) -> None:
    guarded = make()
    somebody_else()
    numbers = count()
    with failing(monkeypatch, lambda: next(numbers) < 0):
        assert guarded.intact()
    asked = next(numbers)
    assert asked > 1
    for failed in range(asked):
        somebody_else()
        numbers = count()
        with failing(monkeypatch, lambda: next(numbers) == failed), pytest.raises(OSError, match="No buffer"):  # noqa: B023
            guarded.intact()
    assert guarded.intact()


@pytest.mark.parametrize("make", [firewall, senders, balancer, fence])
def test_tables_that_are_gone_are_seen(make: Callable[[], Guarded]) -> None:
    guarded = make()
    before = listed()
    tables = [line.split()[1:3] for line in before.splitlines() if line.startswith("table ")]
    assert tables
    for family, name in tables:
        subprocess.run(["nft", "delete", "table", family, name], check=True)
        assert not guarded.intact()
        guarded.apply()
        assert guarded.intact()
    assert sorted(listed().splitlines()) == sorted(before.splitlines())


@pytest.mark.parametrize("make", [firewall, senders, fence])
def test_what_is_written_is_written_also_when_nobody_can_look(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[], Guarded], caplog: pytest.LogCaptureFixture
) -> None:
    with failing(monkeypatch, lambda: True):
        guarded = make()
        assert "are written and cannot be checked" in caplog.text
        with pytest.raises(OSError, match="No buffer"):
            guarded.intact()
    assert guarded.intact()
    assert TABLE in listed()


def test_a_port_is_published_whether_or_not_its_rules_can_be_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    made = firewall()
    port = PublishedPort("tcp", "0.0.0.0", 8080, "10.0.0.2", 80)
    subprocess.run(["nft", "delete", "table", "ip", TABLE], check=True)
    with failing(monkeypatch, lambda: True):
        made.publish([port])
    assert made.intact()
    made.withdraw([port])
    assert made.intact()
