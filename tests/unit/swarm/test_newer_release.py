"""Messages and records of a newer release: fields that this one does not know are ignored, wherever they are."""

from typing import Any

import msgspec
import pytest
from msgspec import Struct

from husk.engine.logs.records import LogQuery
from husk.engine.model.network import Network
from husk.engine.networks.sharing import Place
from husk.registry.auth import Credentials
from husk.rpc.protobuf import Message
from husk.swarm.model.node import Node, NodeDescription, NodeStatus, manager_at
from husk.swarm.model.placement import NodeFacts
from husk.swarm.model.services import ClusterObject
from husk.swarm.model.swarm import Membership
from husk.swarm.network.server import AddressKeys, AddressReply, NetworkLookup
from husk.swarm.network.share import AddressRequest, TunnelKey
from husk.swarm.port import messages as messages
from husk.swarm.port.assignment_messages import (
    AssignedTask,
    AssignedValue,
    AssignmentUpdate,
    HeartbeatReply,
    KnownRecord,
    NetworkNews,
    Report,
    ReportReply,
    Reports,
    decoded,
    encoded,
)
from husk.swarm.port.log_messages import Asked
from husk.swarm.state.kinds import READERS
from husk.swarm.state.no_store import NoStore
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.transactions import ClusterRecord, News
from tests.unit.swarm.manager.test_planner import make_service, make_task

# A field with the number 99, as protobuf writes a text.
FIELD_99 = b"\x9a\x06\x05newer"


def with_more(value: Any) -> Any:
    """The same as JSON has it, with a field in each object that nobody here knows."""
    if isinstance(value, Struct):
        fields = {
            field.encode_name: with_more(getattr(value, field.name)) for field in msgspec.structs.fields(type(value))
        }
        return fields if value.__struct_config__.array_like else fields | {"newer": {"than": ["this"]}}
    if isinstance(value, msgspec.Raw):
        return value
    if isinstance(value, list | tuple | frozenset):
        return [with_more(one) for one in value]
    if isinstance(value, dict):
        return {key: with_more(one) for key, one in value.items()}
    return value


def node() -> Node:
    described = NodeDescription(hostname="alpha", plugins=[("Log", "x")], generic={"gpu": 2})
    return Node(
        id="n", version=1, created_at="", updated_at="", description=described,
        status=NodeStatus(state="ready", addr="192.0.2.1"), manager=manager_at("192.0.2.1"),
    )  # fmt: skip


def secret() -> ClusterObject:
    return ClusterObject(
        id="s", kind="secret", version=1, created_at="", updated_at="", name="s", labels={"a": "b"}, sealed=b"\xff"
    )


@pytest.mark.parametrize(
    ("kind", "record"), [("service", make_service()), ("task", make_task(1)), ("secret", secret()), ("node", node())]
)
def test_records(kind: str, record: Any):
    body = msgspec.json.encode(with_more(record))
    assert b"newer" in body and READERS[kind](body) == record
    records = SwarmRecords(NoStore())
    assert records.take_in(News(5, True, (ClusterRecord(kind, record.id, body, 5),))) and not records.unreadable


def test_a_record_of_a_kind_that_is_not_known():
    records = SwarmRecords(NoStore())
    known = msgspec.json.encode(make_task(1))
    strange = ClusterRecord("extension", "x", b'{"anything": 1}', 5)
    assert not records.take_in(News(5, True, (strange,), (("extension", "y"),)))
    assert records.take_in(News(6, False, (strange, ClusterRecord("task", make_task(1).id, known, 6))))
    assert not records.unreadable and len(records.tasks) == 1


TOLD = AssignmentUpdate(
    all=True,
    complete=True,
    node=NodeFacts(id="n", hostname="alpha", labels={"a": "b"}, plugins=frozenset({("Log", "x")})),
    tasks=[AssignedTask(task=make_task(1), service=make_service(), credentials=Credentials("user", "word"))],
    values=[AssignedValue(kind="secret", id="s", data=b"\x00\xff")],
    dropped=[("secret", "old")],
    managers=[("n", "192.0.2.1:2377")],
    networks=NetworkNews(all=True, records=[KnownRecord("overlay", "x", msgspec.Raw(b'{"newer": 1}'))]),
)


@pytest.mark.parametrize(
    "message",
    [
        TOLD,
        Reports(reports=[Report(task_id="t", status=make_task(1).status)]),
        ReportReply(refused=["t"]),
        HeartbeatReply(period_ns=5),
        node().description,
        AddressRequest(network="x", names=("web",)),
        AddressReply(places=[Place(network="x", address="10.0.0.2", node="n", kind="endpoint")]),
        AddressKeys(keys=["x/10.0.0.2"]),
        NetworkLookup(network="x"),
        TunnelKey(key="k", port=1),
        Asked(node="n", tasks=["t"], query=LogQuery()),
        Membership(node_id="n", managers=["192.0.2.1:2377"]),
        Network(id="x", name="x", driver="overlay", created="", subnet="10.0.0.0/24", gateway="10.0.0.1"),
    ],
    ids=lambda message: type(message).__name__,
)
def test_messages(message: Struct):
    body = msgspec.json.encode(with_more(message))
    assert b"newer" in body
    assert encoded(decoded(body, type(message))) == encoded(message)


@pytest.mark.parametrize(
    "message",
    [
        messages.RootRequest(),
        messages.RootReply(certificate=b"x"),
        messages.JoinRequest(token="x", request=b"y", port=5),
        messages.RenewRequest(request=b"x"),
        messages.CertificateReply(certificate=b"x", managers=["192.0.2.1:2377"]),
        messages.FollowRequest(roots=b"x"),
        messages.FollowReply(roots=b"x", renew=True),
        messages.EnterRequest(request=b"x"),
        messages.EnterReply(key=b"x", members=["192.0.2.1:2379"]),
    ],
    ids=lambda message: type(message).__name__,
)
def test_messages_about_trust(message: Message):
    assert type(message).decode(message.encode() + FIELD_99) == message
