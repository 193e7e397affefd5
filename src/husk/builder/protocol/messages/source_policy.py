"""Policies about sources (`sourcepolicy/pb/policy.proto`)."""

from typing import Annotated

from husk.rpc.protobuf import Enum, Message


class AttrConstraint(Message):
    key: Annotated[str, 1] = ""
    value: Annotated[str, 2] = ""
    condition: Annotated[Enum, 3] = 0


class Selector(Message):
    identifier: Annotated[str, 1] = ""
    match_type: Annotated[Enum, 2] = 0
    constraints: Annotated[list[AttrConstraint], 3] = []


class Update(Message):
    identifier: Annotated[str, 1] = ""
    attrs: Annotated[dict[str, str], 2] = {}


class Rule(Message):
    action: Annotated[Enum, 1] = 0
    selector: Annotated[Selector | None, 2] = None
    updates: Annotated[Update | None, 3] = None


class Policy(Message):
    version: Annotated[int, 1] = 0
    rules: Annotated[list[Rule], 2] = []
