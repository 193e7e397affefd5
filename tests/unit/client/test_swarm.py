from typing import Any

from husk.client.calls import Calls
from husk.client.swarm import Node

SWARM: dict[str, Any] = {
    "ID": "w1",
    "Version": {"Index": 3},
    "Spec": {"Labels": {"a": "b"}, "Orchestration": {"TaskHistoryRetentionLimit": 5}, "CAConfig": {"ForceRotate": 1}},
}
NODE = {
    "ID": "n1",
    "Version": {"Index": 4},
    "Spec": {"Role": "manager", "Availability": "active", "Labels": {"a": "b"}},
    "Description": {"Hostname": "here"},
    "Status": {"State": "ready"},
}


async def test_a_new_one(client, engine):
    engine.answers("POST", "/swarm/init", "n1")
    made = await client.swarm.init(advertise_addr="10.0.0.1", autolock_managers=True, task_history_retention_limit=2)
    assert made == "n1"
    asked = engine.last("POST", "/swarm/init").document
    assert (asked["AdvertiseAddr"], asked["AutoLockManagers"]) == ("10.0.0.1", True)
    assert asked["Spec"] == {"Orchestration": {"TaskHistoryRetentionLimit": 2}}


async def test_changes(client, engine):
    engine.answers("GET", "/swarm", SWARM)
    engine.answers("POST", "/swarm/update", None)
    await client.swarm.update(
        rotate_worker_token=True,
        labels={},
        task_history_retention_limit=1,
        autolock_managers=False,
        dispatcher_heartbeat_period=2,
        node_cert_expiry=3600,
    )
    asked = engine.last("POST", "/swarm/update")
    assert asked.query == {
        "version": "3",
        "rotateWorkerToken": "1",
        "rotateManagerToken": "0",
        "rotateManagerUnlockKey": "0",
    }
    assert asked.document == {
        "Labels": {},
        "Orchestration": {"TaskHistoryRetentionLimit": 1},
        "EncryptionConfig": {"AutoLockManagers": False},
        "Dispatcher": {"HeartbeatPeriod": 2 * 10**9},
        "CAConfig": {"ForceRotate": 1, "NodeCertExpiry": 3600 * 10**9},
    }


async def test_what_is_not_said_stays(client, engine):
    engine.answers("GET", "/swarm", SWARM)
    engine.answers("POST", "/swarm/update", None)
    await client.swarm.update(spec={"Labels": {"c": "d"}})
    assert engine.last("POST", "/swarm/update").document == {**SWARM["Spec"], "Labels": {"c": "d"}}


async def test_joining_leaving_and_locks(client, engine):
    engine.answers("POST", "/swarm/join", None)
    engine.answers("POST", "/swarm/leave", None)
    engine.answers("POST", "/swarm/unlock", None)
    engine.answers("GET", "/swarm/unlockkey", {"UnlockKey": "k"})
    await client.swarm.join(["10.0.0.1"], "token")
    assert engine.last("POST", "/swarm/join").document["RemoteAddrs"] == ["10.0.0.1"]
    await client.swarm.leave(force=True)
    assert engine.last("POST", "/swarm/leave").query == {"force": "1"}
    assert await client.swarm.get_unlock_key() == "k"
    await client.swarm.unlock("k")
    assert engine.last("POST", "/swarm/unlock").document == {"UnlockKey": "k"}


async def test_nodes(client, engine):
    engine.answers("GET", "/nodes", [NODE])
    engine.answers("GET", "/nodes/n1", NODE)
    engine.answers("POST", "/nodes/n1/update", None)
    engine.answers("DELETE", "/nodes/n1", None)
    (node,) = await client.nodes.list(filters={"role": "manager"})
    assert node == await client.nodes.get("n1") == Node(Calls(engine.dial), NODE)
    assert (node.name, node.state, node.role) == ("here", "ready", "manager")
    assert (node.availability, node.labels) == ("active", {"a": "b"})
    await node.update(availability="drain")
    asked = engine.last("POST", "/nodes/n1/update")
    assert asked.query == {"version": "4"}
    assert asked.document == {"Role": "manager", "Availability": "drain", "Labels": {"a": "b"}}
    await node.remove(force=True)
