from pathlib import Path

import pytest

from husk.cluster.port.messages import JoinRequest
from husk.cluster.port.peers import Peer
from husk.cluster.trust import authority
from husk.cluster.trust.holders import Holder, Role
from husk.engine.services.office import SwarmOffice
from husk.errors import InvalidParameter, NotImplementedYet
from husk.storage.state.store import StateStore
from tests.unit.engine.services.swarm_room import SwarmRoom
from tests.unit.engine.services.test_certificates import rotate, trust_of


@pytest.fixture
async def room(tmp_path: Path, state: StateStore) -> SwarmRoom:
    made = SwarmRoom(tmp_path, state)
    await made.init()
    return made


def office(room: SwarmRoom, work: bool = True) -> SwarmOffice:
    return SwarmOffice(room.store, room.cluster, room.certificates, has_work=lambda: work)


def asking(**fields: str) -> JoinRequest:
    return JoinRequest(request=authority.new_request()[1], hostname="beta", **fields)


async def test_nobody_joins_before_there_is_work_for_them(room: SwarmRoom) -> None:
    with pytest.raises(NotImplementedYet, match="cannot give work to several hosts"):
        await office(room, work=False).admit("worker", asking(), "192.0.2.9")
    assert len(room.store.nodes) == 1


@pytest.mark.parametrize("role", ["worker", "manager"])
async def test_who_joins_is_in_the_records_with_a_certificate(room: SwarmRoom, role: Role) -> None:
    there = office(room)
    reply = await there.admit(role, asking(availability="drain"), "192.0.2.9")
    (node,) = [node for node in room.store.nodes.values() if node.id != room.cluster.node_id]
    assert authority.look(reply.certificate).holder == Holder(node.id, role, there.swarm)
    assert (node.spec.role, node.spec.availability, node.status.state) == (role, "drain", "unknown")
    assert (node.status.addr, node.description.hostname) == ("192.0.2.9", "beta")
    assert (node.manager is not None) == (role == "manager") and there.role(node.id) == role
    assert reply.roots == there.root() and reply.managers[0] == "192.0.2.1:2377"
    assert there.role("nobody") is None


async def test_what_is_no_request_makes_no_node(room: SwarmRoom) -> None:
    with pytest.raises(InvalidParameter, match="P-256"):
        await office(room).admit("worker", JoinRequest(request=b"x"), "192.0.2.9")
    with pytest.raises(InvalidParameter, match="invalid Availability"):
        await office(room).admit("worker", asking(availability="x"), "192.0.2.9")
    assert len(room.store.nodes) == 1


async def test_nodes_are_told_when_they_need_another_certificate(room: SwarmRoom) -> None:
    there = office(room)
    await there.admit("worker", asking(), "192.0.2.9")
    (node,) = [node.id for node in room.store.nodes.values() if node.id != room.cluster.node_id]
    peer = Peer("192.0.2.9", Holder(node, "worker", there.swarm), 1e12)
    assert there.wanted(peer) == (there.root(), False, ("192.0.2.1:2377",))
    record = room.store.nodes[node]
    record.spec.role = "manager"
    assert there.wanted(peer).renew, "it has another role"
    record.spec.role = "worker"
    await rotate(room)
    await room.certificates.settle()
    trust = trust_of(room)
    assert there.wanted(peer) == (trust.roots.encode(), True, ("192.0.2.1:2377",))
    reply = await there.renew(node, authority.new_request()[1])
    assert authority.look(reply.certificate).issuer_key_id == trust.signing.key_id
    assert trust_of(room).next is None, "it was the last"
    assert not there.wanted(peer).renew and there.tokens().worker == room.cluster.swarm.worker_token
    await there.changed()
