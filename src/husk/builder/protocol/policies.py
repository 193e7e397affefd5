"""Policies about sources as the protocol has them, in our words; and what is known of a source in its."""

from enum import IntEnum
from typing import TypeVar

from husk.builder.graph import ops
from husk.builder.protocol.messages import gateway
from husk.builder.protocol.messages import source_policy as messages
from husk.builder.protocol.messages.common import Timestamp
from husk.builder.solver.source_policy import SourceFacts
from husk.builder.solver.source_rules import Action, AttributeConstraint, Condition, Match, Policy, SourceRule, Update
from husk.errors import InvalidParameter
from husk.registry.web import seconds_of

_Choice = TypeVar("_Choice", bound=IntEnum)


def policy(message: messages.Policy | None) -> Policy:
    return [_rule(rule) for rule in message.rules] if message is not None else []


def _rule(message: messages.Rule) -> SourceRule:
    if message.selector is None:
        raise InvalidParameter("invalid nil selector in policy")
    update = message.updates
    return SourceRule(
        action=_choice(Action, message.action),
        identifier=message.selector.identifier,
        match=_choice(Match, message.selector.match_type),
        constraints=[
            AttributeConstraint(one.key, one.value, _choice(Condition, one.condition))
            for one in message.selector.constraints
        ],
        update=Update(update.identifier, update.attrs) if update is not None else None,
    )


def _choice(kind: type[_Choice], number: int) -> _Choice:
    try:
        return kind(number)
    except ValueError:
        raise InvalidParameter(f"source policy: unknown {kind.__name__.lower()} {number}") from None


def facts_message(facts: SourceFacts, with_config: bool = True) -> gateway.ResolveSourceMetaResponse:
    told = gateway.ResolveSourceMetaResponse(source=ops.SourceOp(facts.source.identifier, facts.source.attributes))
    if facts.image is not None:
        config = facts.image.config if with_config else b""
        told.image = gateway.ResolveSourceImageResponse(facts.image.digest, config)
    if (git := facts.git) is not None:
        of_tag = git.commit if git.commit != git.id else ""
        told.git = gateway.ResolveSourceGitResponse(git.id, git.reference or git.id, of_tag)
    if (file := facts.file) is not None:
        modified = Timestamp(seconds_of(file.modified)) if file.modified else None
        told.http = gateway.ResolveSourceHTTPResponse(file.digest, file.name, modified)
    return told
