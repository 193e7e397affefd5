"""The swarm of this host: its records, and what a crash leaves of them."""

import asyncio
from pathlib import Path
from unittest.mock import AsyncMock

import msgspec
import pytest

from husk.errors import DiskFault, SystemFault, Unauthorized, Unavailable
from husk.storage.state.store import Change, StateStore
from husk.swarm.membership.autolock import write_key
from husk.swarm.model import refusals
from husk.swarm.model.settings import SwarmSpec
from husk.swarm.model.swarm import KEY, KIND, MEMBERSHIP
from husk.swarm.state.transactions import News
from tests.support.full_store import FullStore
from tests.support.waiting import soon
from tests.unit.swarm.membership.test_moving import swarm
from tests.unit.swarm.swarm_room import SwarmRoom


async def test_a_record_that_cannot_be_read_makes_no_other_swarm(tmp_path: Path, state: StateStore) -> None:
    await state.commit(Change(KIND, "s", b"{nonsense"))
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


async def test_a_host_says_which_subnets_it_uses(tmp_path: Path, state: StateStore) -> None:
    room = SwarmRoom(tmp_path, state)
    used = room.networks.used = ["192.0.2.0/24"]
    await room.init()
    assert room.cluster.node.description.subnets == used
    used.append("198.51.100.0/24")
    await room.cluster.describe_self()
    assert room.cluster.node.description.subnets == used


async def test_a_swarm_that_cannot_be_written_leaves_nothing(tmp_path: Path, state: FullStore) -> None:
    room = SwarmRoom(tmp_path, state)
    state.full, state.refuses = True, lambda change: change.kind == KIND
    with pytest.raises(DiskFault):
        await room.init()
    assert (room.cluster.active, room.cluster.node_id, state.load(MEMBERSHIP)) == (False, "", {})
    state.full = False
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


async def test_a_manager_whose_records_are_not_known_is_unlocked_all_the_same(
    tmp_path: Path, state: StateStore
) -> None:
    """Its member of etcd may wait for that."""
    first = SwarmRoom(tmp_path, state)
    await first.init()
    first.sealer.lock(b"u" * 32)
    first.sealer.keep_locked()
    room, key = SwarmRoom(tmp_path, state, patience=0.0), write_key(b"u" * 32)
    room.store.swarms.clear()
    room.store.nodes.clear()
    room.store.shared, room.store.away = True, lambda: refusals.LOCKED
    room.sealer.look()
    assert room.cluster.locked and not room.cluster.pending and not room.cluster.parting and not room.cluster.active
    for refused in (lambda: room.cluster.swarm, lambda: room.cluster.record):
        with pytest.raises(Unavailable, match="needs to be unlocked"):
            refused()
    with pytest.raises(Unavailable, match="encrypted and locked"):
        await room.cluster.leave(False)
    with pytest.raises(Unauthorized):
        await room.cluster.unlock(write_key(bytes(32)))
    opened = AsyncMock(side_effect=[SystemFault("its key is damaged"), None])
    room.cluster.opened.subscribe(opened)
    with pytest.raises(SystemFault):
        await room.cluster.unlock(key)
    assert room.cluster.locked, "it can be tried again"
    await room.cluster.unlock(key)
    assert not room.cluster.locked and room.cluster.pending and opened.await_count == 2


async def test_no_lock_is_settled_while_others_is_followed(
    tmp_path: Path, state: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would remove the file that the other goes by: none would be left."""
    room = SwarmRoom(tmp_path, state)
    await room.init()
    room.store.shared = True
    alone = list[bool]()
    monkeypatch.setattr(room.sealer, "settle", lambda locked: alone.append(room.cluster._changing.locked()))
    monkeypatch.setattr(room.sealer, "follow", lambda key: alone.append(room.cluster._changing.locked()))
    await room.cluster.open()
    await room.cluster.follow_lock()
    assert alone == [True, True]
