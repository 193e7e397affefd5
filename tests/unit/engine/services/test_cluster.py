"""The swarm of this host: its records, those of an earlier release, and what a crash leaves of them."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from husk.cluster.records import News
from husk.cluster.trust.tokens import read_token
from husk.engine.services.cluster import KIND
from husk.engine.services.settings import SwarmSpec
from husk.engine.services.swarm import KEY, MEMBERSHIP
from husk.errors import DiskFault, Unavailable
from husk.storage.state.store import Change, StateStore
from tests.support.waiting import soon
from tests.unit.engine.services.swarm_room import SwarmRoom
from tests.unit.engine.services.test_moving import swarm

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


async def write(state: StateStore, record: dict[str, Any] | None) -> None:
    body = b"{nonsense" if record is None else msgspec.json.encode(record)
    await state.commit(Change(KIND, "s", body))


@pytest.mark.parametrize("died", [False, True])
async def test_the_record_of_an_earlier_release_becomes_a_swarm_and_a_node(
    tmp_path: Path, state: StateStore, died: bool
) -> None:
    await write(state, FORMER)
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


async def test_a_record_that_cannot_be_read_makes_no_other_swarm(tmp_path: Path, state: StateStore) -> None:
    await write(state, None)
    room = SwarmRoom(tmp_path, state)
    await room.services.open()
    assert room.cluster.unreadable and not room.cluster.active
    with pytest.raises(Unavailable, match="check-store"):
        await room.init()
    with pytest.raises(Unavailable, match="check-store"):
        _ = room.cluster.swarm
    assert list(state.load(KIND)) == ["s"]


async def test_a_node_whose_own_record_cannot_be_read_is_left_alone(tmp_path: Path, state: StateStore) -> None:
    room = SwarmRoom(tmp_path, state)
    await room.init()
    await state.commit(Change("node", room.cluster.node_id, b"{"))
    again = SwarmRoom(tmp_path, state)
    await again.services.open()
    assert again.cluster.unreadable
    with pytest.raises(Unavailable, match="check-store"):
        _ = again.cluster.node


async def test_a_host_that_has_another_name_says_so_at_the_next_start(tmp_path: Path, state: StateStore) -> None:
    room = SwarmRoom(tmp_path, state)
    await room.init()
    again = SwarmRoom(tmp_path, state, hostname="beta")
    await again.services.open()
    assert again.nodes.find("beta").id == room.cluster.node_id


async def test_a_swarm_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, state: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = SwarmRoom(tmp_path, state)
    commit = state.commit

    async def full(*changes: Change, lazy: bool = False) -> None:
        if changes[0].kind == KIND:
            raise DiskFault("no space left on device")
        await commit(*changes, lazy=lazy)

    with monkeypatch.context() as patch:
        patch.setattr(state, "commit", full)
        with pytest.raises(DiskFault):
            await room.init()
    assert (room.cluster.active, room.cluster.node_id, state.load(MEMBERSHIP)) == (False, "", {})
    await room.init()
    assert room.cluster.active


async def test_a_daemon_that_died_before_it_was_a_swarm_is_none(tmp_path: Path, state: StateStore) -> None:
    await state.commit(Change(MEMBERSHIP, "self", b'{"node_id":"n"}'))
    room = SwarmRoom(tmp_path, state)
    await room.services.open()
    assert (room.cluster.node_id, state.load(MEMBERSHIP)) == ("", {})


async def test_each_change_of_the_swarm_has_a_version_of_its_own(tmp_path: Path, state: StateStore) -> None:
    room = SwarmRoom(tmp_path, state)
    await room.init()
    seen = room.cluster.swarm
    await room.cluster.update(SwarmSpec(), seen.version, worker_token=True, manager_token=False, unlock_key=False)
    assert room.cluster.swarm.version > seen.version and room.cluster.swarm.worker_token != seen.worker_token


async def test_a_manager_that_is_about_to_leave_hears_what_that_means(tmp_path: Path, state: StateStore) -> None:
    room = SwarmRoom(tmp_path, state)
    with pytest.raises(Unavailable, match="This node is not part of a swarm"):
        await room.cluster.leave(False)
    await room.init()
    with pytest.raises(Unavailable, match="Removing the last manager erases all current state of the swarm"):
        await room.cluster.leave(False)
    await room.store.save(msgspec.structs.replace(room.cluster.node, id="other", version=0))
    with pytest.raises(Unavailable, match=r"Removing this node leaves 1 managers out of 2\. Use `--force`"):
        await room.cluster.leave(False)


async def test_a_swarm_that_has_just_gone_is_in_nobodys_way(tmp_path: Path, state: StateStore) -> None:
    room = SwarmRoom(tmp_path, state)
    room.store.swarms[KEY] = swarm("former")
    making = soon(room.init())
    await asyncio.sleep(0)
    room.store.take_in(News(1, False, (), ((KIND, KEY),)))
    await making
    assert room.cluster.active and room.cluster.swarm.id != "former"
    other = SwarmRoom(tmp_path, state, "beta")
    await other.cluster.part()
    with pytest.raises(Unavailable, match="holds a swarm already"):
        await other.init()
