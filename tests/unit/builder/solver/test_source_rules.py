"""Rules about sources: which apply, and what they make of a source."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.builder.graph.operations import Source
from husk.builder.solver import source_rules
from husk.builder.solver.source_rules import (
    Action,
    AttributeConstraint,
    Condition,
    Match,
    SourceDenied,
    SourceRule,
    Update,
)
from husk.errors import InvalidParameter, NotImplementedYet

BUSYBOX = Source("docker-image://docker.io/library/busybox:1.36")
FILE = Source("https://example.com/a", {"http.checksum": "x"})


def rule(action: Action, identifier: str, update: Update | None = None, **more: object) -> SourceRule:
    return SourceRule(action=action, identifier=identifier, update=update, **more)  # type: ignore[arg-type]


def is_denied(rules: list[SourceRule], source: Source = BUSYBOX) -> bool:
    try:
        assert source_rules.apply([rules], source) == source
    except SourceDenied as error:
        assert error.message == f'source "{source.identifier}" denied by policy: source denied by policy'
        return True
    return False


def test_the_last_rule_that_applies_counts():
    denied, allowed = rule(Action.DENY, "docker-image://*"), rule(Action.ALLOW, "*/busybox:*")
    assert not is_denied([])
    assert is_denied([denied])
    assert not is_denied([denied, allowed])
    assert is_denied([allowed, denied])
    assert not is_denied([denied], FILE)


def test_what_one_policy_denies_no_other_allows():
    with pytest.raises(SourceDenied):
        source_rules.apply([[rule(Action.DENY, "*")], [rule(Action.ALLOW, "*")]], BUSYBOX)


def test_exact_rules_and_constraints_on_attributes():
    assert not is_denied([rule(Action.DENY, "docker-image://*", match=Match.EXACT)])
    assert is_denied([rule(Action.DENY, BUSYBOX.identifier, match=Match.EXACT)])
    for value, condition, expected in (
        ("x", Condition.EQUAL, True),
        ("y", Condition.EQUAL, False),
        ("x", Condition.NOT_EQUAL, False),
        ("y", Condition.NOT_EQUAL, True),
    ):
        wanted = [AttributeConstraint("http.checksum", value, condition)]
        assert is_denied([rule(Action.DENY, "https://*", constraints=wanted)], FILE) is expected


def test_another_source_takes_its_place_and_is_read_again():
    rules = [
        rule(Action.CONVERT, "docker-image://docker.io/library/*:*", Update("docker-image://mirror/${1}-$2$$")),
        rule(Action.CONVERT, "docker-image://mirror/*", Update("", {"k": "v"}), match=Match.EXACT),
        rule(Action.DENY, "docker-image://mirror/secret*"),
    ]
    assert source_rules.apply([rules], BUSYBOX).identifier == "docker-image://mirror/busybox-1.36$"
    with pytest.raises(SourceDenied, match="mirror/secret-1"):
        source_rules.apply([rules], Source("docker-image://docker.io/library/secret:1"))


def test_attributes_alone_can_be_changed():
    rules = [rule(Action.CONVERT, FILE.identifier, Update(attributes={"http.checksum": "y"}), match=Match.EXACT)]
    assert source_rules.apply([rules], FILE) == Source(FILE.identifier, {"http.checksum": "y"})


def test_sources_that_take_each_others_place_without_end():
    rules = [rule(Action.CONVERT, "a", Update("b")), rule(Action.CONVERT, "b", Update("a"))]
    with pytest.raises(InvalidParameter, match="too many mutations on a single source"):
        source_rules.apply([rules], Source("a"))
    with pytest.raises(InvalidParameter, match="too many mutations on a single source"):
        source_rules.apply([[rule(Action.CONVERT, "*", Update("${1}a"))]], Source("a"))


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        (rule(Action.DENY, "a**"), InvalidParameter, "invalid wildcard"),
        (rule(Action.DENY, "a" * 5000), InvalidParameter, "4096 characters"),
        (rule(Action.CONVERT, "a"), InvalidParameter, "missing destination"),
        (rule(Action.CONVERT, "a", Update("b" * 20_000)), InvalidParameter, "16384 letters"),
        (rule(Action.DENY, "(a+)+$", match=Match.REGEX), NotImplementedYet, "regular expressions"),
        (
            rule(Action.DENY, "a", constraints=[AttributeConstraint("k", "v", Condition.MATCHES)]),
            NotImplementedYet,
            "regular",
        ),
    ],
)
def test_rules_that_cannot_be_followed(wrong: SourceRule, kind: type[Exception], message: str):
    with pytest.raises(kind, match=message):
        source_rules.check([wrong])
    with pytest.raises(InvalidParameter, match="more than 1000 rules"):
        source_rules.check([rule(Action.ALLOW, "*")] * 1001)


def test_what_is_converted_again_and_again_does_not_grow_without_end():
    """Ten times with each of twenty conversions."""
    grows = rule(Action.CONVERT, "https://*", Update("https://" + "$1" * 10))
    with pytest.raises(InvalidParameter, match="16384 letters at most"):
        source_rules.apply([[grows]], FILE)


def test_wildcards_take_as_much_as_they_can_the_first_before_the_second():
    assert source_rules.wildcards("*a*a*", "banana") == ["banana", "ban", "n", ""]
    assert source_rules.wildcards("ab*", "abc") == ["abc", "c"]
    assert source_rules.wildcards("aba*aba", "ababa") is None
    assert source_rules.wildcards("abc", "abc") == ["abc"]


@given(st.lists(st.text("ab", max_size=3), min_size=1, max_size=4), st.text("ab", max_size=12))
def test_wildcards_are_those_of_a_greedy_expression(pieces: list[str], text: str):
    import re

    wanted = "*".join(pieces)
    if "**" in wanted:
        return
    found = re.fullmatch("(.*)".join(map(re.escape, pieces)), text)
    assert source_rules.wildcards(wanted, text) == ([text, *found.groups()] if found else None)
