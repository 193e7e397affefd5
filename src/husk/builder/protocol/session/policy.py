"""A client's own decisions about the sources of its build."""

from husk.builder.graph import llb_read, llb_write
from husk.builder.protocol.messages.policy_session import CheckPolicyRequest, CheckPolicyResponse
from husk.builder.protocol.policies import facts_message
from husk.builder.protocol.session.calls import SessionCalls, in_our_words
from husk.builder.solver.source_policy import Decision, Inquiry, SourceFacts
from husk.builder.solver.source_rules import Action
from husk.errors import InvalidParameter
from husk.registry.manifest import Platform

_CHECK = "/moby.buildkit.v1.sourcepolicy.policysession.PolicyVerifier/CheckPolicy"
_MOST_SAID = 20


async def check(calls: SessionCalls, facts: SourceFacts, platform: Platform | None) -> Decision | Inquiry:
    question = CheckPolicyRequest(llb_write.platform(platform) if platform else None, facts_message(facts))
    with in_our_words(f"source policy of the client for {facts.source.identifier}"):
        answer = CheckPolicyResponse.decode(await calls.ask(_CHECK, question.encode()))
    if (wanted := answer.request) is not None:
        if wanted.source is None:
            raise InvalidParameter("the client's source policy asks for no source")
        return Inquiry(
            source=llb_read.source(wanted.source),
            platform=llb_read.platform(wanted.platform),
            shown_as=wanted.log_name,
            pull=wanted.resolve_mode == "pull",
        )
    if (decision := answer.decision) is None:
        raise InvalidParameter("no decision in policy response")
    return Decision(
        # What is neither allowed nor another source is denied.
        action=Action(decision.action) if decision.action in (Action.ALLOW, Action.CONVERT) else Action.DENY,
        update=llb_read.source(decision.update) if decision.update is not None else None,
        said=[one.message for one in decision.deny_messages[:_MOST_SAID]],
    )
