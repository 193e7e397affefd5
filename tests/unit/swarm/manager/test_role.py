"""A manager's place in a swarm: what is begun is ended, and what is laid down leaves nothing."""

import asyncio
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from husk.config import ClusterStoreConfig
from husk.errors import Unavailable
from husk.storage.state.store import StateStore
from husk.swarm.model.node import ManagerStatus, Node
from husk.swarm.model.settings import NodeSpec
from husk.swarm.model.swarm import MEMBERSHIP, SELF, Membership
from husk.swarm.state.cluster_store import ClusterStore
from husk.swarm.state.parts import store_of
from husk.swarm.state.sqlite import SqliteStore
from husk.swarm.state.transactions import ClusterRecord
from husk.text.endpoints import HostPort
from tests.support.but import but
from tests.support.tapped_store import TappedStore
from tests.support.waiting import soon
from tests.unit.swarm.membership.test_nodes import worker
from tests.unit.swarm.swarm_room import SwarmRoom


class FakeShared:
    """A store that managers share. `looks` is called each time that somebody waits for it."""

    def __init__(self, looks: Callable[[], None] = lambda: None) -> None:
        self.told: list[str] = []
        self.looks = looks

    def take_part(self, node_id: str) -> None:
        self.told.append("take part")

    async def part(self) -> None:
        self.looks()
        self.told.append("part")

    async def close(self) -> None:
        self.looks()
        self.told.append("close")


async def with_member(room: SwarmRoom, looks: Callable[[], None] = lambda: None) -> FakeShared:
    """This manager has a place among members of etcd, which nobody asks for anything; and files of its own member."""
    shared = FakeShared(looks)
    await room.cluster.note_store(room.etcd_membership.where([HostPort("192.0.2.1", 2379)]), {})
    room.node_role.manager_role.shared = shared  # type: ignore[assignment]
    return shared


def placed(state: StateStore) -> Membership:
    """This host's place, as the next daemon would find it."""
    return state.records(MEMBERSHIP, Membership)[SELF]


async def test_who_leaves_asks_for_no_store_after_a_crash(room: SwarmRoom, state: StateStore, tmp_path: Path) -> None:
    await with_member(room)
    (tmp_path / "swarm.etcd").mkdir()
    found = list[tuple[str, object]]()
    room.etcd.on_wipe = lambda directory: found.append((placed(state).store, placed(state).others))
    await room.node_role.manager_role.lay_down(heard=False)
    assert found == [("", None)] and store_of(state) is None


async def test_records_that_are_moved_stay_where_they_are_if_whoever_asked_leaves(
    tmp_path: Path, state: StateStore
) -> None:
    """The new manager's connection breaks when the records are in etcd, and in SQLite no more."""
    moved, go_on = asyncio.Event(), asyncio.Event()
    with closing(StateStore.open(tmp_path / "target.db")) as other:
        target = TappedStore(SqliteStore(other))

        async def asked(kind: str, key: str) -> ClusterRecord | None:
            if room.store.store is target:
                moved.set()
                await go_on.wait()
            return await target.beneath.get(kind, key)

        target.on_get = asked
        room = SwarmRoom(tmp_path, state, opener=lambda where: target)
        await room.init()
        asking = soon(room.node_role.manager_role.several())
        await moved.wait()
        asking.cancel()
        await asyncio.sleep(0)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await asking
        for _ in range(2):
            assert room.node_role.manager_role.shared is not None and room.store.store is target
            assert (tmp_path / "swarm.etcd").exists() and room.etcd.made[-1].told == ["start"]
            await room.node_role.manager_role.several()
        await room.services.close()


@pytest.mark.parametrize("fails", ["begin", "move"])
async def test_an_etcd_that_cannot_be_begun_leaves_nothing(tmp_path: Path, state: StateStore, fails: str) -> None:
    failure = Unavailable("etcd is not ready")

    def opener(where: ClusterStoreConfig) -> ClusterStore:
        raise failure

    room = SwarmRoom(tmp_path, state, opener=opener)
    await room.init()
    if fails == "begin":
        room.etcd.start_fails = failure
    with pytest.raises(Unavailable, match="not ready"):
        await room.node_role.manager_role.several()
    assert room.etcd.made[-1].told[-1] == "stop" and not (tmp_path / "swarm.etcd").exists()
    assert room.node_role.manager_role.shared is None and not room.etcd_membership.here


async def test_the_only_manager_that_is_left_is_one_whatever_it_was_to_be(room: SwarmRoom) -> None:
    """Most managers were lost while it was being demoted."""
    member = await room.begin_etcd()
    lost = but(worker("m", "gamma"), spec=NodeSpec(role="manager"), manager=ManagerStatus(addr="192.0.2.7:2377"))
    await room.store.save(lost)
    own = room.cluster.node_id

    def demoted(node: Node) -> Node:
        return but(node, spec__role="worker", manager=None)

    await room.store.amend(room.store.nodes[own], demoted)
    await room.node_role.manager_role.start_over()
    assert member.told == ["start", "start alone"]
    assert {id: node.spec.role for id, node in room.store.nodes.items()} == {own: "manager", "m": "worker"}
    there = room.store.nodes[own].manager
    assert there is not None and there.addr == "192.0.2.1:2377"
    await room.etcd_membership.close()
