"""Rules of a client about the sources of its build: a source is allowed, denied, or another one takes its place. Pure.

Rules are read in their order. The last one that allows or denies counts; one that converts ends the reading, and what
it has made of the source is read again from the first.
"""

import re
from collections.abc import Mapping, Sequence
from enum import IntEnum

from msgspec import Struct, structs

from husk.builder.graph import schemes
from husk.builder.graph.operations import Source
from husk.errors import Forbidden, InvalidParameter, NotImplementedYet
from husk.text.patterns import pattern

MOST_RULES = 1000
LONGEST_PATTERN = 4096
_MOST_CONVERSIONS = 20
_REFERENCE = pattern(r"\$(?:(\$)|\{(\w+)\}|(\w+))")


class Action(IntEnum):
    ALLOW = 0
    DENY = 1
    CONVERT = 2


class Match(IntEnum):
    WILDCARD = 0
    EXACT = 1
    REGEX = 2


class Condition(IntEnum):
    EQUAL = 0
    NOT_EQUAL = 1
    MATCHES = 2


class AttributeConstraint(Struct, frozen=True):
    """The condition on an attribute of the source."""

    key: str
    value: str
    condition: Condition = Condition.EQUAL


class Update(Struct, frozen=True):
    """The source that takes another's place; `$1` is what the first wildcard stands for."""

    identifier: str = ""
    attributes: Mapping[str, str] = {}


class SourceRule(Struct, frozen=True, kw_only=True):
    action: Action
    identifier: str
    match: Match = Match.WILDCARD
    constraints: Sequence[AttributeConstraint] = ()
    update: Update | None = None


Policy = Sequence[SourceRule]


class SourceDenied(Forbidden):
    """A source that the client's policy does not allow, with what the policy says about it."""

    def __init__(self, message: str, said: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.said = list(said)


def check(rules: Policy) -> None:
    """InvalidParameter, NotImplementedYet: what cannot be followed is told before anything is built."""
    if len(rules) > MOST_RULES:
        raise InvalidParameter(f"a source policy of more than {MOST_RULES} rules")
    for rule in rules:
        matches = any(one.condition == Condition.MATCHES for one in rule.constraints)
        if rule.match == Match.REGEX or matches:
            raise NotImplementedYet("regular expressions in source policies are not implemented by Husk yet")
        if len(rule.identifier) > LONGEST_PATTERN:
            raise InvalidParameter(f"source policy: a pattern of more than {LONGEST_PATTERN} characters")
        if rule.update is not None and len(rule.update.identifier) > schemes.LONGEST:
            raise _too_long()
        if rule.match == Match.WILDCARD and "**" in rule.identifier:
            raise InvalidParameter(
                f'error matching source policy: failed to translate wildcard "{rule.identifier}" to regexp: '
                'invalid wildcard: "**"'
            )
        if rule.action == Action.CONVERT and rule.update is None:
            raise InvalidParameter("error mutating source policy: missing destination for convert rule")


def apply(policies: Sequence[Policy], source: Source) -> Source:
    """The source that is to be used instead, which may be the same. What one policy denies no other allows.
    SourceDenied."""
    for _ in range(_MOST_CONVERSIONS + 1):
        converted = next((one for rules in policies if (one := _read(rules, source)) != source), source)
        if converted == source:
            return source
        source = converted
    raise InvalidParameter("too many mutations on a single source: too many operations")


def _read(rules: Policy, source: Source) -> Source:
    denied = False
    for rule in rules:
        found = _matched(rule, source)
        if found is None:
            continue
        if rule.action == Action.CONVERT:
            if (converted := _converted(rule, source, found)) != source:
                return converted
        else:
            denied = rule.action == Action.DENY
    if denied:
        raise SourceDenied(f'source "{source.identifier}" denied by policy: source denied by policy')
    return source


def _matched(rule: SourceRule, source: Source) -> list[str] | None:
    """Match a source: all of it, and then the text of each wildcard; None if the rule is about other sources."""
    for one in rule.constraints:
        if (source.attributes.get(one.key, "") == one.value) is not (one.condition == Condition.EQUAL):
            return None
    if rule.match == Match.WILDCARD:
        return wildcards(rule.identifier, source.identifier)
    return [source.identifier] if rule.identifier == source.identifier else None


def wildcards(wanted: str, text: str) -> list[str] | None:
    """The text, and what each `*` in it stands for: as much as it can, the first before the second. None: no match.

    Each piece between two of them is looked for from the end, so that it takes no more time than to read the text.
    """
    first, *rest = wanted.split("*")
    if not rest:
        return [text] if wanted == text else None
    *middle, last = rest
    end = len(text) - len(last)
    if end < len(first) or not text.startswith(first) or not text.endswith(last):
        return None
    found = []
    for piece in reversed(middle):
        at = text.rfind(piece, len(first), end)
        if at < 0:
            return None
        found.append(text[at + len(piece) : end])
        end = at
    return [text, text[len(first) : end], *reversed(found)]


def _converted(rule: SourceRule, source: Source, found: Sequence[str]) -> Source:
    assert rule.update is not None
    identifier = rule.update.identifier or rule.identifier
    if rule.match == Match.WILDCARD:
        identifier = _filled_in(identifier, found)
    attributes = {**source.attributes, **rule.update.attributes}
    return structs.replace(source, identifier=identifier or source.identifier, attributes=attributes)


def _filled_in(text: str, found: Sequence[str]) -> str:
    """InvalidParameter where it grows too long: what is converted may be converted again."""
    left = schemes.LONGEST - len(text)

    def stands_for(reference: "re.Match[str]") -> str:
        nonlocal left
        if reference[1]:
            return "$"
        name = reference[2] or reference[3]
        number = int(name) if name.isascii() and name.isdigit() and len(name) < 4 else len(found)
        filled = found[number] if number < len(found) else ""
        left -= len(filled)
        if left < 0:
            raise _too_long()
        return filled

    return _REFERENCE.sub(stands_for, text)


def _too_long() -> InvalidParameter:
    return InvalidParameter(f"source policy: the identifier of a source has {schemes.LONGEST} letters at most")
