"""The records of a swarm that comes back: who is there, what is over, and which addresses are taken."""

from typing import Any

import msgspec
import pytest

from husk.engine.networks.sharing import Place
from husk.errors import InvalidParameter
from husk.storage.state.schema import SCHEMA
from husk.swarm.backup.file import BackupContent, SavedRecord
from husk.swarm.backup.restored import of_today, own_node, restored
from husk.swarm.model.node import Node, NodeStatus, manager_at
from husk.swarm.model.services import Service, ServiceSpec, Task, VirtualIP
from husk.swarm.model.settings import NodeSpec, SwarmSpec
from husk.swarm.model.swarm import Swarm, SwarmRoot
from husk.swarm.state.transactions import Put
from tests.support.but import but
from tests.unit.swarm.swarm_room import task

ROOT = SwarmRoot(certificate="c", key=b"k", subject=b"s", public_key=b"p", key_id=b"i")
SERVICE = Service(
    id="web",
    version=9,
    created_at="",
    updated_at="",
    spec=ServiceSpec(name="web"),
    virtual_ips=[VirtualIP(network_id="net", addr="10.0.1.2/24"), VirtualIP(network_id="net", addr="10.0.1.3/24")],
)


def node(id: str, role: Any = "worker", state: Any = "ready", **fields: Any) -> Node:
    made = Node(id=id, version=7, created_at="", updated_at="", spec=NodeSpec(role=role, labels={"disk": id}), **fields)
    made = but(made, status=NodeStatus(state=state, addr=f"addr-{id}"))
    return but(made, manager=manager_at(made.status.addr, 99) if role == "manager" else None)


def swarm() -> Swarm:
    made = Swarm(id="s", version=5, created_at="", updated_at="", spec=SwarmSpec(), worker_token="w", manager_token="m")
    return but(made, store_root=ROOT)


def content(*records: tuple[str, str, Any]) -> BackupContent:
    kept = [SavedRecord(kind, key, msgspec.Raw(msgspec.json.encode(body))) for kind, key, body in records]
    return BackupContent(swarm="s", node="me", schema=SCHEMA, listen_address="", key=b"", unlock_key=b"", records=kept)


def found(*records: tuple[str, str, Any]) -> dict[tuple[str, str], Put]:
    given = content(
        ("swarm", "default", swarm()),
        ("node", "me", node("me", "manager", data_path="x", tunnel_key="k", store_port=9)),
        *records,
    )
    puts = restored(given, "192.0.2.1", 2377, "", 77)
    assert (puts[-1].kind, puts[-1].key) == ("swarm", "default"), "the record that counts is the last"
    assert len(puts) == len({(put.kind, put.key) for put in puts}) and {put.version for put in puts} == {0}
    return {(put.kind, put.key): put for put in puts}


def as_node(put: Put) -> Node:
    return msgspec.json.decode(put.body, type=Node)


def as_task(put: Put) -> Task:
    return msgspec.json.decode(put.body, type=Task)


def test_this_host_takes_the_place_of_the_manager_that_made_it():
    own = as_node(found()["node", "me"])
    assert (own.status.state, own.status.addr, own.data_path) == ("ready", "192.0.2.1", "")
    assert (own.tunnel_key, own.tunnel_port, own.store_port) == ("", 0, 0), "those of the lost host"
    assert own.manager is not None and own.manager.addr == "192.0.2.1:2377" and own.spec.labels == {"disk": "me"}


def test_other_managers_are_lost_and_workers_are_waited_for():
    made = found(
        ("node", "m2", node("m2", "manager")), ("node", "w", node("w")), ("node", "d", node("d", state="down"))
    )
    lost = as_node(made["node", "m2"])
    assert (lost.spec.role, lost.manager, lost.status.state, lost.status.since_ns) == ("worker", None, "down", 77)
    assert as_node(made["node", "w"]).status.state == "disconnected"
    assert as_node(made["node", "d"]).status == NodeStatus(state="down", addr="addr-d")


def test_tasks_of_the_lost_host_are_over_and_others_as_they_were():
    mine, other = task(SERVICE, node_id="me"), task(SERVICE, slot=2, node_id="w")
    ended = task(SERVICE, slot=3, node_id="me", state="failed")
    made = found(*(("task", each.id, each) for each in (mine, other, ended)))
    over = as_task(made["task", mine.id])
    assert (over.status.state, over.desired_state, over.alive) == ("orphaned", "shutdown", False)
    assert as_task(made["task", other.id]) == other and as_task(made["task", ended.id]) == ended


def test_addresses_of_the_lost_host_are_free_and_those_of_services_taken():
    def place(address: str, node: str, kind: Any) -> tuple[str, str, Place]:
        made = Place(network="net", address=address, node=node, kind=kind)
        return "address", made.key, made

    made = found(
        ("service", "web", SERVICE),
        place("10.0.1.2", "me", "service"),
        place("10.0.1.7", "me", "endpoint"),
        place("10.0.1.8", "me", "host"),
        place("10.0.1.9", "w", "endpoint"),
    )
    assert {key for kind, key in made if kind == "address"} == {"net/10.0.1.2", "net/10.0.1.3", "net/10.0.1.9"}
    added = msgspec.json.decode(made["address", "net/10.0.1.3"].body, type=Place)
    assert (added.kind, added.node, bool(added.mac)) == ("service", "me", True)


def test_the_former_etcd_is_not_believed_any_more():
    assert b'"store_root":null' in found()["swarm", "default"].body


def test_what_is_known_to_nobody_here_is_kept_as_it_is():
    assert found(("config", "c", {"any": "thing"}))["config", "c"].body == b'{"any":"thing"}'


@pytest.mark.parametrize(
    ("records", "why"),
    [
        ([("swarm", "default", swarm())], "the node that made it"),
        ([("node", "me", node("me", "manager"))], "the record of the swarm"),
        ([("node", "me", node("me", "manager")), ("task", "t", {"id": 1})], "task t cannot be read"),
    ],
)
def test_a_backup_that_is_not_whole(records: list[tuple[str, str, Any]], why: str):
    with pytest.raises(InvalidParameter, match=why):
        restored(content(*records), "192.0.2.1", 2377, "", 77)


def test_who_made_it():
    assert own_node(content(("node", "x", node("x")), ("node", "me", node("me", "manager")))).id == "me"


def test_records_of_another_release():
    records = (("swarm", "default", swarm()), ("node", "me", node("me", "manager")))
    older = msgspec.structs.replace(content(*records), schema=1)
    assert of_today(older).schema == SCHEMA and len(restored(of_today(older), "192.0.2.1", 2377, "", 77)) == 2
    with pytest.raises(InvalidParameter, match="a later version of Husk"):
        of_today(msgspec.structs.replace(older, schema=SCHEMA + 1))
