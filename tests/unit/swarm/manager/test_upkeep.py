from pathlib import Path
from typing import cast

import msgspec
import pytest

from husk.errors import Unavailable
from husk.storage.state.store import StateStore
from husk.swarm.manager.upkeep import ManagerUpkeep
from husk.swarm.membership.etcd_membership import EtcdMembership
from husk.swarm.signals import Signal
from husk.swarm.state.transactions import Put
from tests.support.but import but
from tests.support.waiting import until_async
from tests.unit.swarm.membership.test_certificates import rotate, trust_of
from tests.unit.swarm.membership.test_nodes import worker
from tests.unit.swarm.swarm_room import SwarmRoom


class FakeCouncil:
    here = True
    removed = False

    def __init__(self) -> None:
        self.ended = Signal[[]]()
        self.told: list[str] = []
        self.places: list[str] = ["a"]
        self.fails = 0
        self.lock_fails: OSError | None = None

    def endpoints(self) -> list[str]:
        return self.places

    def know(self, endpoints: list[str]) -> None:
        self.told.append(f"know {endpoints}")

    async def follow_lock(self) -> None:
        if self.lock_fails is not None:
            raise self.lock_fails

    async def settle(self) -> None:
        self.told.append("settle")

    async def bring_back(self) -> None:
        self.told.append("bring back")
        self.removed = False
        if self.fails:
            self.fails -= 1
            raise Unavailable("it does not answer yet")

    async def tidy(self) -> None:
        if self.fails:
            self.fails -= 1
            raise Unavailable("not now")
        self.told.append("tidy")


def nothing() -> None:
    pass


@pytest.fixture
async def room(tmp_path: Path, state: StateStore) -> SwarmRoom:
    made = SwarmRoom(tmp_path, state)
    await made.init()
    return made


async def test_members_are_looked_at_when_managers_change(room: SwarmRoom) -> None:
    etcd_membership, demoted = FakeCouncil(), list[str]()
    there = ManagerUpkeep(
        room.store,
        room.cluster,
        cast(EtcdMembership, etcd_membership),
        lambda: demoted.append("demoted"),
        nothing,
        pause=0.0,
    )
    etcd_membership.fails = 2
    there.start()
    await until_async(lambda: "tidy" in etcd_membership.told, "that it tries until it can")
    etcd_membership.told.clear()
    await there.look()
    assert etcd_membership.told == [] and demoted == []
    etcd_membership.places = ["a", "b"]
    there.wake()
    await until_async(lambda: etcd_membership.told == ["know ['a', 'b']", "tidy"], "the new one")
    there.start()
    await there.close()


async def test_a_member_that_others_removed_is_brought_back(room: SwarmRoom) -> None:
    etcd_membership = FakeCouncil()
    there = ManagerUpkeep(room.store, room.cluster, cast(EtcdMembership, etcd_membership), nothing, nothing, pause=0.0)
    there.start()
    await until_async(lambda: "tidy" in etcd_membership.told, "the first look")
    etcd_membership.told.clear()
    etcd_membership.removed, etcd_membership.fails = True, 1
    etcd_membership.ended.emit()
    await until_async(lambda: "tidy" in etcd_membership.told, "that it is back")
    assert etcd_membership.told == ["bring back", "know ['a']", "settle", "tidy"]
    await there.close()


async def test_a_member_that_was_removed_with_its_manager_stays_away(room: SwarmRoom) -> None:
    """Though this host has not heard of its demotion yet."""
    etcd_membership, demoted = FakeCouncil(), list[str]()
    there = ManagerUpkeep(
        room.store, room.cluster, cast(EtcdMembership, etcd_membership), lambda: demoted.append("demoted"), nothing
    )
    own, elsewhere = room.cluster.node, worker("w", "beta")
    elsewhere = but(elsewhere, id=own.id)
    await room.store.store.commit(Put("node", own.id, msgspec.json.encode(elsewhere), own.version))
    assert room.cluster.node.is_manager
    etcd_membership.removed = True
    await there.look()
    assert demoted == ["demoted"] and etcd_membership.told == []


async def test_a_full_disk_does_not_end_it(room: SwarmRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    faults = iter([OSError(28, "No space left on device"), KeyError("ours")])

    async def follow_lock() -> None:
        if (fault := next(faults, None)) is not None:
            raise fault

    monkeypatch.setattr(room.cluster, "follow_lock", follow_lock)
    etcd_membership = FakeCouncil()
    there = ManagerUpkeep(room.store, room.cluster, cast(EtcdMembership, etcd_membership), nothing, nothing, pause=0.0)
    there.start()
    await until_async(lambda: "tidy" in etcd_membership.told, "that it goes on")
    await there.close()


async def test_a_key_that_cannot_be_sealed_keeps_nobody_from_another_place(
    room: SwarmRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key of the swarm's secrets goes last: the other is sealed with it."""
    etcd_membership, order = FakeCouncil(), list[str]()

    async def sealing() -> None:
        order.append("the member's key")
        raise OSError(1, "Operation not permitted")

    async def locking() -> None:
        order.append("the swarm's key")

    monkeypatch.setattr(etcd_membership, "follow_lock", sealing)
    monkeypatch.setattr(room.cluster, "follow_lock", locking)
    there = ManagerUpkeep(room.store, room.cluster, cast(EtcdMembership, etcd_membership), nothing, nothing)
    for _ in range(2):
        with pytest.raises(OSError, match="not permitted"):
            await there.look()
    assert order == ["the member's key", "the swarm's key"] * 2, "and it is tried again"
    assert etcd_membership.told == ["know ['a']", "settle", "tidy"]


async def test_a_lock_is_followed_when_it_can_be(room: SwarmRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    followed: list[bool] = []

    async def follow_lock() -> None:
        followed.append(room.cluster.locked)

    monkeypatch.setattr(room.cluster, "follow_lock", follow_lock)
    there = ManagerUpkeep(room.store, room.cluster, cast(EtcdMembership, FakeCouncil()), nothing, nothing)
    room.sealer.locked = True
    for _ in range(2):
        await there.look()
    room.sealer.locked = False
    await there.look()
    assert followed == [True, False], "once more when somebody has unlocked it"


async def test_who_is_to_be_a_worker_hears_of_it(room: SwarmRoom) -> None:
    etcd_membership, demoted = FakeCouncil(), list[str]()
    there = ManagerUpkeep(
        room.store, room.cluster, cast(EtcdMembership, etcd_membership), lambda: demoted.append("demoted"), nothing
    )
    node = worker("w", "beta")
    node.spec.role = "manager"
    await room.store.save(node)
    own = room.cluster.node
    own.spec.role = "worker"
    await there.look()
    assert demoted == ["demoted"] and etcd_membership.told == []


async def test_where_there_is_no_swarm_nothing_is_done(tmp_path: Path, state: StateStore) -> None:
    room, etcd_membership = SwarmRoom(tmp_path, state), FakeCouncil()
    await ManagerUpkeep(room.store, room.cluster, cast(EtcdMembership, etcd_membership), nothing, nothing).look()
    assert etcd_membership.told == []


async def test_a_root_that_another_manager_replaces_is_heard_of(room: SwarmRoom) -> None:
    """Also by one whose port nobody has knocked at: the others wait for its certificate."""
    told = list[str]()
    there = ManagerUpkeep(
        room.store, room.cluster, cast(EtcdMembership, FakeCouncil()), nothing, lambda: told.append("trust")
    )
    node = worker("w", "beta")
    node = but(node, issuer=trust_of(room).root.key_id)
    await room.store.save(node)
    for _ in range(2):
        await there.look()
    assert told == ["trust"]
    await rotate(room)
    for _ in range(2):
        await there.look()
    assert told == ["trust"] * 2, "it begins"
    await room.certificates.settle()
    for _ in range(2):
        await there.look()
    assert told == ["trust"] * 3, "somebody has come further"
    room.certificates.note("w", trust_of(room).signing.key_id)
    await room.certificates.settle()
    assert trust_of(room).next is None
    for _ in range(2):
        await there.look()
    assert told == ["trust"] * 4, "it has ended"
