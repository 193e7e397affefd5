"""A manager's place in a swarm: what is begun is ended, and what is laid down leaves nothing."""

import asyncio
from unittest.mock import AsyncMock

import pytest

from husk.config import ClusterStoreConfig
from husk.errors import Unavailable
from husk.storage.state.store import StateStore
from husk.swarm.manager import role as manager_role
from husk.swarm.model.node import ManagerStatus, Node
from husk.swarm.model.settings import NodeSpec
from husk.swarm.model.swarm import MEMBERSHIP, SELF, Membership
from husk.swarm.state.parts import store_of
from husk.text.endpoints import HostPort
from tests.support.but import but
from tests.support.waiting import soon
from tests.unit.swarm.membership.test_nodes import worker
from tests.unit.swarm.swarm_room import SwarmRoom


class FakeShared:
    def __init__(self) -> None:
        self.told: list[str] = []

    def take_part(self, node_id: str) -> None:
        self.told.append("take part")

    async def part(self) -> None:
        self.told.append("part")

    async def close(self) -> None:
        self.told.append("close")


async def with_member(room: SwarmRoom, monkeypatch: pytest.MonkeyPatch) -> FakeShared:
    """This manager has a member of etcd, which it does not ask for anything."""
    shared = FakeShared()

    async def nobody_left(*, forced: bool) -> None:
        """The other managers forget it."""

    monkeypatch.setattr(room.etcd_membership, "depart", nobody_left)
    monkeypatch.setattr(room.etcd_membership, "spare", AsyncMock())
    await room.cluster.note_store(room.etcd_membership.where([HostPort("192.0.2.1", 2379)]), {})
    room.node_role.manager_role.shared = shared  # type: ignore[assignment]
    return shared


def placed(state: StateStore) -> Membership:
    """This host's place, as the next daemon would find it."""
    return state.records(MEMBERSHIP, Membership)[SELF]


async def test_who_leaves_asks_for_no_store_after_a_crash(
    room: SwarmRoom, state: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await with_member(room, monkeypatch)
    found = list[tuple[str, object]]()
    monkeypatch.setattr(
        room.etcd_membership, "_wipe", lambda: found.append((placed(state).store, placed(state).others))
    )
    await room.node_role.manager_role.lay_down(heard=False)
    assert found == [("", None)] and store_of(state) is None


async def test_records_that_are_moved_stay_where_they_are_if_whoever_asked_leaves(
    room: SwarmRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new manager's connection breaks when the records are in etcd, and in SQLite no more."""
    shared, moved, go_on, dropped = FakeShared(), asyncio.Event(), asyncio.Event(), list[str]()
    where = room.etcd_membership.where([HostPort("192.0.2.1", 2379)])

    async def begun() -> ClusterStoreConfig:
        return where

    async def move(*_: object) -> FakeShared:
        await room.cluster.note_store(where, {})
        moved.set()
        await go_on.wait()
        return shared

    async def drop() -> None:
        dropped.append("all")

    monkeypatch.setattr(room.etcd_membership, "begin", begun)
    monkeypatch.setattr(room.etcd_membership, "drop", drop)
    monkeypatch.setattr(manager_role, "move", move)
    asking = soon(room.node_role.manager_role.several())
    await moved.wait()
    asking.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert dropped == [] and room.node_role.manager_role.shared is shared  # type: ignore[comparison-overlap]
    await room.node_role.manager_role.several()
    assert dropped == []


@pytest.mark.parametrize("fails", ["begin", "move"])
async def test_an_etcd_that_cannot_be_begun_leaves_nothing(
    room: SwarmRoom, fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped = list[str]()

    async def failing(*_: object) -> None:
        raise Unavailable("etcd is not ready")

    async def fine() -> ClusterStoreConfig:
        return room.etcd_membership.where([HostPort("192.0.2.1", 2379)])

    async def drop() -> None:
        dropped.append("all")

    monkeypatch.setattr(room.etcd_membership, "begin", failing if fails == "begin" else fine)
    monkeypatch.setattr(manager_role, "move", failing)
    monkeypatch.setattr(room.etcd_membership, "drop", drop)
    with pytest.raises(Unavailable, match="not ready"):
        await room.node_role.manager_role.several()
    assert dropped == ["all"] and room.node_role.manager_role.shared is None


async def test_the_only_manager_that_is_left_is_one_whatever_it_was_to_be(
    room: SwarmRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most managers were lost while it was being demoted."""
    await with_member(room, monkeypatch)
    lost = but(worker("m", "gamma"), spec=NodeSpec(role="manager"), manager=ManagerStatus(addr="192.0.2.7:2377"))
    await room.store.save(lost)
    own = room.cluster.node_id

    def demoted(node: Node) -> Node:
        return but(node, spec__role="worker", manager=None)

    await room.store.amend(room.store.nodes[own], demoted)
    monkeypatch.setattr(room.etcd_membership, "start_alone", AsyncMock())
    await room.node_role.manager_role.start_over()
    assert {id: node.spec.role for id, node in room.store.nodes.items()} == {own: "manager", "m": "worker"}
    there = room.store.nodes[own].manager
    assert there is not None and there.addr == "192.0.2.1:2377"
