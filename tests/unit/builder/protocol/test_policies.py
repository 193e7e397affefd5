"""Policies about sources as clients send them."""

import pytest

from husk.builder.graph.operations import Source
from husk.builder.protocol import policies
from husk.builder.protocol.messages.source_policy import AttrConstraint, Policy, Rule, Selector, Update
from husk.builder.solver import source_rules
from husk.builder.solver.source_policy import DescribedImage, Resolved, ResolvedFile, SourceFacts
from husk.builder.solver.source_rules import Action, AttributeConstraint, Condition, Match
from husk.errors import InvalidParameter


def test_a_policy_is_read() -> None:
    first = Rule(2, Selector("a*", 1, [AttrConstraint("k", "v", 1)]), Update("b", {"c": "d"}))
    sent = Policy(1, [first, Rule(1, Selector("x"))])
    assert policies.policy(Policy.decode(sent.encode())) == [
        source_rules.SourceRule(
            action=Action.CONVERT,
            identifier="a*",
            match=Match.EXACT,
            constraints=[AttributeConstraint("k", "v", Condition.NOT_EQUAL)],
            update=source_rules.Update("b", {"c": "d"}),
        ),
        source_rules.SourceRule(action=Action.DENY, identifier="x", constraints=[]),
    ]
    assert policies.policy(None) == []


WRONG = (
    Rule(9, Selector("x")),
    Rule(1),
    Rule(1, Selector("x", 7)),
    Rule(1, Selector("x", 0, [AttrConstraint("", "", 8)])),
)


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_no_policy(wrong: Rule) -> None:
    with pytest.raises(InvalidParameter, match="policy"):
        policies.policy(Policy(1, [wrong]))


def test_what_is_known_of_a_source() -> None:
    source = Source("x://y", {"k": "v"})
    image = policies.facts_message(SourceFacts(source, DescribedImage("r", "sha256:1", b"{}")))
    assert image.source is not None and (image.source.identifier, image.source.attrs) == ("x://y", {"k": "v"})
    assert image.image is not None and (image.image.digest, image.image.config) == ("sha256:1", b"{}")
    assert image.git is None and image.http is None
    bare = policies.facts_message(SourceFacts(source, DescribedImage("r", "sha256:1", b"{}")), with_config=False)
    assert bare.image is not None and bare.image.config == b""
    git = policies.facts_message(SourceFacts(source, git=Resolved("refs/tags/v1", "a", "b"))).git
    assert git is not None and (git.checksum, git.ref, git.commit_checksum) == ("a", "refs/tags/v1", "b")
    http = policies.facts_message(
        SourceFacts(source, file=ResolvedFile("sha256:1", "f", "Sat, 03 Feb 2001 04:05:06 GMT"))
    ).http
    assert http is not None and http.last_modified is not None and http.last_modified.seconds == 981173106
