"""The service PolicyVerifier, which clients serve (`sourcepolicy/policysession/policysession.proto`)."""

from typing import Annotated

from husk.builder.graph.ops import Platform, SourceOp
from husk.builder.protocol.messages.gateway import ResolveSourceMetaRequest, ResolveSourceMetaResponse
from husk.rpc.protobuf import Enum, Message


class CheckPolicyRequest(Message):
    platform: Annotated[Platform | None, 1] = None
    source: Annotated[ResolveSourceMetaResponse | None, 2] = None


class DenyMessage(Message):
    message: Annotated[str, 1] = ""


class DecisionResponse(Message):
    action: Annotated[Enum, 1] = 0
    deny_messages: Annotated[list[DenyMessage], 2] = []
    update: Annotated[SourceOp | None, 3] = None


class CheckPolicyResponse(Message):
    decision: Annotated[DecisionResponse | None, 1] = None
    request: Annotated[ResolveSourceMetaRequest | None, 2] = None
