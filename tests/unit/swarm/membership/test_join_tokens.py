"""The disk of a swarm with autolock is not enough to join that swarm."""

from pathlib import Path

import pytest

from husk.errors import InvalidParameter, SystemFault
from husk.storage.secrets.sealing import Sealer
from husk.storage.state.store import StateStore
from husk.swarm.ca import roots
from husk.swarm.membership import former_records, join_tokens
from husk.swarm.model.settings import CAConfig, EncryptionConfig, SwarmSpec
from tests.support.but import but
from tests.unit.swarm.swarm_room import SwarmRoom


@pytest.fixture
async def room(tmp_path: Path, state: StateStore) -> SwarmRoom:
    made = SwarmRoom(tmp_path, state)
    await made.init()
    return made


def spec(autolock: bool) -> SwarmSpec:
    return SwarmSpec(encryption_config=EncryptionConfig(auto_lock_managers=autolock))


async def lock(room: SwarmRoom, autolock: bool = True, **rotate: bool) -> None:
    changes = {"worker_token": False, "manager_token": False, "unlock_key": False} | rotate
    await room.cluster.update(spec(autolock), room.cluster.swarm.version, **changes)


async def stored(room: SwarmRoom) -> bytes:
    record = await room.store.store.get("swarm", "default")
    assert record is not None
    return record.body


async def test_with_autolock_they_are_sealed_and_shown_to_clients(room: SwarmRoom) -> None:
    before = room.cluster.shown
    assert before.worker_token.startswith("SWMTKN-") and before.manager_token.encode() in await stored(room)
    await lock(room)
    assert b"SWMTKN-" not in await stored(room)
    assert (room.cluster.shown.worker_token, room.cluster.shown.manager_token) == (
        before.worker_token,
        before.manager_token,
    ), "they are the same"
    room.cluster.check_token(before.manager_token)
    for wrong in ("", before.worker_token, room.cluster.swarm.manager_token):
        with pytest.raises(InvalidParameter):
            room.cluster.check_token(wrong)
    await lock(room, worker_token=True)
    assert b"SWMTKN-" not in await stored(room) and room.cluster.shown.worker_token != before.worker_token
    await lock(room, autolock=False)
    assert room.cluster.swarm == room.cluster.shown and before.manager_token.encode() in await stored(room)


async def test_those_of_a_new_root_are_sealed_too(room: SwarmRoom) -> None:
    await lock(room)
    before = room.cluster.shown
    rotated = but(spec(True), ca_config=CAConfig(force_rotate=1))
    version = room.cluster.swarm.version
    await room.cluster.update(rotated, version, worker_token=False, manager_token=False, unlock_key=False)
    await room.certificates.settle()
    assert room.cluster.swarm.trust is not None and room.cluster.swarm.trust.next is None
    assert room.cluster.shown.worker_token != before.worker_token and b"SWMTKN-" not in await stored(room)


async def test_what_a_former_release_left_open_is_sealed_when_the_swarm_is_unlocked(room: SwarmRoom) -> None:
    await lock(room)
    opened = room.cluster.shown
    await room.store.save(but(opened, version=room.cluster.swarm.version))
    assert b"SWMTKN-" in await stored(room)
    await former_records.with_sealed_tokens(room.store, room.sealer)
    assert b"SWMTKN-" not in await stored(room) and room.cluster.shown.worker_token == opened.worker_token
    version = room.cluster.swarm.version
    await former_records.with_sealed_tokens(room.store, room.sealer)
    assert room.cluster.swarm.version == version, "once"


async def test_a_key_of_another_swarm_opens_none(room: SwarmRoom, tmp_path: Path) -> None:
    await lock(room)
    with pytest.raises(SystemFault, match="cannot be unsealed"):
        join_tokens.shown(room.cluster.swarm, Sealer(tmp_path / "other.key"))
    assert roots.with_tokens(room.cluster.swarm).worker_token.startswith("SWMTKN-")
