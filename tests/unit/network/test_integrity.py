"""The number of rules that a table must have is read from the commands that write it."""

import pytest

from husk.kernel.nflisting import Chain, Shape
from husk.network import integrity, rules


def test_rules_are_counted_by_family_and_chain():
    commands = "add table ip mine\nadd rule ip mine a accept\nadd rule ip6 mine a drop\nadd rule ip mine a drop\n"
    assert integrity.rules("mine", commands + "add rule ip other a accept\n") == {"ip": {"a": 2}, "ip6": {"a": 1}}


def test_every_rule_of_ours_is_counted():
    commands = rules.ruleset("husk", []) + rules.bridge_ruleset("husk")
    counted = integrity.rules("husk", commands)
    assert sum(sum(chain.values()) for chain in counted.values()) == commands.count("add rule ")


def test_what_cannot_be_looked_at_after_it_was_written_is_looked_at_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    present: dict[str, Shape] = {"ip": {"a": Chain(b"", b"", b"", (b"accept",))}}

    def shape(family: str, table: str) -> Shape:
        if not present:
            raise OSError(24, "Too many open files")
        return present[family]

    whole, written = dict(present), integrity.Written("mine", shape)
    present.clear()
    written.note("add rule ip mine a accept\n")
    assert "the rules of table mine are written and cannot be checked: [Errno 24]" in caplog.text
    with pytest.raises(OSError, match="Too many"):
        written.same("ip")
    present.update(whole)
    assert written.same("ip")
    present["ip"] = {}
    assert not written.same("ip")
    written.note("add rule ip mine a accept\n")
    assert not written.same("ip"), "somebody has removed it before anybody could look"
