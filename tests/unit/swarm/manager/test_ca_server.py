import asyncio
import re
import ssl
from pathlib import Path

import pytest

from husk.aio.tasks import Tasks
from husk.errors import InvalidParameter
from husk.storage.state.store import StateStore
from husk.swarm.ca import authority
from husk.swarm.ca.holders import Holder, Role
from husk.swarm.manager.ca_server import CAServer
from husk.swarm.model.node import NodeDescription
from husk.swarm.port.assignment_messages import encoded
from husk.swarm.port.messages import JoinRequest
from husk.swarm.port.peers import Peer
from tests.unit.swarm.membership.test_certificates import rotate, trust_of
from tests.unit.swarm.swarm_room import SwarmRoom


@pytest.fixture
async def room(tmp_path: Path, state: StateStore) -> SwarmRoom:
    made = SwarmRoom(tmp_path, state)
    await made.init()
    return made


def ca_server(room: SwarmRoom, admitted: list[str] | None = None) -> CAServer:
    heard = [] if admitted is None else admitted
    return CAServer(room.store, room.cluster, room.certificates, heard.append, several)


asked: list[str] = []


async def several() -> None:
    asked.append("several")


def asking(availability: str = "", description: bytes = b"") -> JoinRequest:
    request = authority.new_request()[1]
    return JoinRequest(request=request, hostname="beta", availability=availability, description=description)


def shown(chain: bytes) -> bytes:
    """As TLS gives it to us."""
    end = "-----END CERTIFICATE-----"
    return ssl.PEM_cert_to_DER_cert(chain.decode().partition(end)[0] + end)


async def test_a_manager_joins_when_there_can_be_several(room: SwarmRoom) -> None:
    asked.clear()
    there = ca_server(room)
    request = asking()
    request.port = 2378
    reply = await there.admit("manager", request, "192.0.2.9")
    assert asked == ["several"]
    (node,) = [node for node in room.store.nodes.values() if node.id != room.cluster.node_id]
    assert authority.look(reply.certificate).holder == Holder(node.id, "manager", there.swarm)
    assert node.is_manager and node.manager is not None and node.manager.addr == "192.0.2.9:2378"
    assert there.role(node.id) == "manager" and reply.managers == ["192.0.2.1:2377", "192.0.2.9:2378"]


async def test_who_joins_is_in_the_records_with_a_certificate(room: SwarmRoom) -> None:
    admitted: list[str] = []
    there = ca_server(room, admitted)
    about = encoded(NodeDescription(nano_cpus=4, architecture="x86_64"))
    reply = await there.admit("worker", asking("drain", about), "192.0.2.9")
    (node,) = [node for node in room.store.nodes.values() if node.id != room.cluster.node_id]
    assert authority.look(reply.certificate).holder == Holder(node.id, "worker", there.swarm)
    assert (node.spec.role, node.spec.availability, node.status.state) == ("worker", "drain", "unknown")
    assert (node.status.addr, node.description.hostname, node.description.nano_cpus) == ("192.0.2.9", "beta", 4)
    assert node.manager is None and there.role(node.id) == "worker" and admitted == [node.id]
    assert reply.roots == there.root() and reply.managers == ["192.0.2.1:2377"]
    assert there.role("nobody") is None


async def test_packets_of_networks_may_go_to_another_address(room: SwarmRoom) -> None:
    request = asking()
    request.data_path_address = "198.51.100.9"
    await ca_server(room).admit("worker", request, "192.0.2.9")
    (node,) = [node for node in room.store.nodes.values() if node.id != room.cluster.node_id]
    assert (node.status.addr, node.data_address) == ("192.0.2.9", "198.51.100.9")
    assert room.cluster.node.data_address == room.cluster.advertise_address


@pytest.mark.parametrize("text", ["eth0", "fe80::1%lo", "fe80::1%lo]:1\nremove=true\nx=[fe80::2", "0.0.0.0", "ff02::1"])
async def test_an_address_where_no_packets_can_go_makes_no_node(room: SwarmRoom, text: str) -> None:
    for wrong in ("address", "data_path_address"):
        request = asking()
        setattr(request, wrong, text)
        with pytest.raises(InvalidParameter, match=re.escape(f"a node has an IP address, not {text!r}")):
            await ca_server(room).admit("worker", request, "192.0.2.9")
    assert len(room.store.nodes) == 1


@pytest.mark.parametrize("seen", ["fe80::1", "fe80::1%eth0"])
async def test_an_address_of_one_link_makes_no_node_and_changes_nothing(room: SwarmRoom, seen: str) -> None:
    asked.clear()
    with pytest.raises(InvalidParameter, match=r"this node comes from fe80::1, .*--advertise-addr"):
        await ca_server(room).admit("manager", asking(), seen)
    assert len(room.store.nodes) == 1 and not asked
    request = asking()
    request.address = "2001:db8::9"
    await ca_server(room).admit("worker", request, seen)
    assert [node.status.addr for node in room.store.nodes.values()][1:] == ["2001:db8::9"]


@pytest.mark.parametrize(("seen", "known"), [("::ffff:192.0.2.9", "192.0.2.9"), ("2001:DB8::9", "2001:db8::9")])
async def test_a_node_is_known_by_the_address_it_comes_from(room: SwarmRoom, seen: str, known: str) -> None:
    await ca_server(room).admit("worker", asking(), seen)
    assert [node.status.addr for node in room.store.nodes.values()][1:] == [known]


async def test_what_is_no_request_makes_no_node(room: SwarmRoom) -> None:
    with pytest.raises(InvalidParameter, match="P-256"):
        await ca_server(room).admit("worker", JoinRequest(request=b"x"), "192.0.2.9")
    with pytest.raises(InvalidParameter, match="invalid Availability"):
        await ca_server(room).admit("worker", asking("x"), "192.0.2.9")
    with pytest.raises(InvalidParameter, match="no message of a node"):
        await ca_server(room).admit("worker", asking(description=b"[]"), "192.0.2.9")
    with pytest.raises(InvalidParameter, match="says too much"):
        long = encoded(NodeDescription(engine_labels={"x": "y" * 2000}))
        await ca_server(room).admit("worker", asking(description=long), "192.0.2.9")
    assert len(room.store.nodes) == 1


async def test_nodes_are_told_when_they_need_another_certificate(room: SwarmRoom) -> None:
    there = ca_server(room)
    first = await there.admit("worker", asking(), "192.0.2.9")
    (node,) = [node.id for node in room.store.nodes.values() if node.id != room.cluster.node_id]
    peer = Peer("192.0.2.9", Holder(node, "worker", there.swarm), 1e12, shown(first.certificate))
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
    await room.certificates.settle()
    assert there.wanted(peer).renew and trust_of(room).next is not None, "its answer may have been lost"
    peer = peer._replace(certificate=shown(reply.certificate))
    assert not there.wanted(peer).renew
    await room.certificates.settle()
    assert trust_of(room).next is None, "it was the last"
    assert not there.wanted(peer).renew and there.tokens().worker == room.cluster.swarm.worker_token
    await there.changed()


async def test_no_root_is_replaced_between_a_certificate_and_its_record(
    room: SwarmRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that joins then would have a certificate that nobody believes."""
    there = ca_server(room)
    issue = room.certificates.issue
    tasks = Tasks()

    async def slow(node: str, role: Role, request: bytes) -> bytes:
        made = await issue(node, role, request)
        await rotate(room)
        tasks.spawn(room.certificates.settle(), "settle")
        await asyncio.sleep(0.05)
        return made

    monkeypatch.setattr(room.certificates, "issue", slow)
    reply = await there.admit("worker", asking(), "192.0.2.9")
    await tasks.join()
    trust = trust_of(room)
    assert trust.next is not None, "the new node is waited for"
    assert authority.look(reply.certificate).issuer_key_id == trust.root.key_id
