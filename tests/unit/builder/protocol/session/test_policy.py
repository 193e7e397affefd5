"""A client's word about a source, over the connection of its session."""

import pytest

from husk.builder.graph import ops
from husk.builder.graph.operations import Source
from husk.builder.protocol.messages.gateway import ResolveSourceMetaRequest
from husk.builder.protocol.messages.policy_session import (
    CheckPolicyRequest,
    CheckPolicyResponse,
    DecisionResponse,
    DenyMessage,
)
from husk.builder.solver.source_policy import Decision, Inquiry, SourceFacts
from husk.builder.solver.source_rules import Action
from husk.errors import HuskError, InvalidParameter
from husk.registry.manifest import Platform
from husk.rpc.grpc.status import UNKNOWN, GrpcError
from tests.unit.builder.protocol.session.services import Saying, session_with

CHECK = "/moby.buildkit.v1.sourcepolicy.policysession.PolicyVerifier/CheckPolicy"
SOURCE = Source("https://x/y", {"k": "v"})


async def said(message: object) -> tuple[Decision | Inquiry, CheckPolicyRequest]:
    service = Saying(message)
    async with session_with({CHECK: service}) as session:
        answer = await session.check_policy(SourceFacts(SOURCE), Platform("arm64", "linux"))
    return answer, CheckPolicyRequest.decode(service.asked[0])


async def test_a_client_is_shown_the_source_and_decides() -> None:
    update = ops.SourceOp("https://x/z", {"a": "b"})
    answer, asked = await said(CheckPolicyResponse(DecisionResponse(2, [], update)))
    assert answer == Decision(Action.CONVERT, Source("https://x/z", {"a": "b"}), [])
    assert asked.source is not None and asked.source.source is not None and asked.platform is not None
    assert (asked.source.source.identifier, asked.platform.architecture) == ("https://x/y", "arm64")
    answer, _ = await said(CheckPolicyResponse(DecisionResponse(1, [DenyMessage("no")] * 50)))
    assert answer == Decision(Action.DENY, None, ["no"] * 20)
    assert (await said(CheckPolicyResponse(DecisionResponse())))[0] == Decision(Action.ALLOW, None, [])


async def test_what_a_client_may_ask_first() -> None:
    request = ResolveSourceMetaRequest(ops.SourceOp("https://x/y"), log_name="look", resolve_mode="pull")
    answer, _ = await said(CheckPolicyResponse(request=request))
    assert answer == Inquiry(source=Source("https://x/y"), shown_as="look", pull=True)


async def test_an_unknown_answer_is_no_permission() -> None:
    assert (await said(CheckPolicyResponse(DecisionResponse(7))))[0] == Decision(Action.DENY, None, [])
    for wrong in (CheckPolicyResponse(), CheckPolicyResponse(request=ResolveSourceMetaRequest())):
        with pytest.raises(InvalidParameter):
            await said(wrong)
    with pytest.raises(InvalidParameter, match="source policy of the client for https://x/y: broken"):
        await said(GrpcError(UNKNOWN, "broken"))
    async with session_with({}) as session:
        with pytest.raises(HuskError, match="source policy of the client"):
            await session.check_policy(SourceFacts(SOURCE), None)
