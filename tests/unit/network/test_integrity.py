"""How many rules a table must have is read from the commands that write it."""

from husk.network import integrity, rules


def test_rules_are_counted_by_family_and_chain():
    commands = "add table ip mine\nadd rule ip mine a accept\nadd rule ip6 mine a drop\nadd rule ip mine a drop\n"
    assert integrity.rules("mine", commands + "add rule ip other a accept\n") == {"ip": {"a": 2}, "ip6": {"a": 1}}


def test_every_rule_of_ours_is_counted():
    commands = rules.ruleset("husk", []) + rules.bridge_ruleset("husk")
    counted = integrity.rules("husk", commands)
    assert sum(sum(chain.values()) for chain in counted.values()) == commands.count("add rule ")
