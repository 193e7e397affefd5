"""A swarm as release 0.1 wrote it: one record, no CA."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from husk.storage.state.store import Change, StateStore
from husk.swarm.ca.tokens import read_token
from husk.swarm.membership import former_records
from husk.swarm.model.swarm import KIND, MEMBERSHIP
from tests.unit.swarm.swarm_room import SwarmRoom

FORMER: dict[str, Any] = {
    "id": "s", "version": 12, "created_at": "then", "updated_at": "", "node_id": "n", "node_version": 10,
    "node_updated_at": "",
    "spec": {
        "Name": "default", "Labels": {}, "Orchestration": {"TaskHistoryRetentionLimit": 3},
        "Raft": {"SnapshotInterval": 7, "Unknown": [1], "KeepOldSnapshots": None}, "Dispatcher": {},
        "CAConfig": {"NodeCertExpiry": 5, "ExternalCAs": None}, "EncryptionConfig": {"AutoLockManagers": False},
        "TaskDefaults": {},
    },
    "node_spec": {"Name": "", "Labels": {"disk": "ssd"}, "Role": "manager", "Availability": "drain"},
    "advertise_address": "192.0.2.1", "worker_token": "w", "manager_token": "m",
}  # fmt: skip


@pytest.mark.parametrize("died", [False, True])
async def test_the_record_of_an_earlier_release_becomes_a_swarm_and_a_node(
    tmp_path: Path, state: StateStore, died: bool
) -> None:
    await state.commit(Change(KIND, "s", msgspec.json.encode(FORMER)))
    if died:
        # The daemon that was about to do this wrote down which node it is, and died.
        await state.commit(Change(MEMBERSHIP, "self", b'{"node_id":"n","advertise_address":"192.0.2.1"}'))
    room = SwarmRoom(tmp_path, state)
    await room.services.open()
    for again in (room, SwarmRoom(tmp_path, state)):
        await again.services.open()
        spec = again.cluster.swarm.spec
        assert (spec.history, spec.raft.snapshot_interval, spec.ca_config.external_cas) == (3, 7, [])
        assert again.cluster.swarm.id == "s" and (trust := again.cluster.swarm.trust) is not None
        assert read_token(again.cluster.swarm.worker_token).fits(trust.root.certificate.encode())
        assert room.cluster.swarm.worker_token == again.cluster.swarm.worker_token
        assert again.cluster.swarm.data_path_port == 4789
        node = again.nodes.find("self")
        assert (node.id, node.created_at, node.spec.labels) == ("n", "then", {"disk": "ssd"})
        assert (node.status.addr, node.description.hostname) == ("192.0.2.1", "alpha")
        assert again.cluster.node_facts().availability == "drain"
        assert node.version > 12 and again.cluster.swarm.version > 12
    assert list(state.load(KIND)) == ["default"]


async def test_a_swarm_of_today_has_no_node_in_its_record_and_keeps_its_root(tmp_path: Path, state: StateStore) -> None:
    room = SwarmRoom(tmp_path, state)
    await former_records.with_trust(room.store, room.sealer)  # there is none: nothing happens
    await room.init()
    before = room.cluster.swarm
    assert await former_records.node_of(room.store) is None
    await former_records.with_trust(room.store, room.sealer)
    assert (room.cluster.swarm.trust, room.cluster.swarm.version) == (before.trust, before.version)
