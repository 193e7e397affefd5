"""Nodes as clients look them up, change and remove them."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from unittest.mock import AsyncMock

import pytest

from husk.engine.model.filters import Filters
from husk.errors import InvalidParameter, NotFound, Unavailable
from husk.storage.state.store import StateStore
from husk.swarm.membership.cluster import Cluster
from husk.swarm.membership.nodes import Nodes
from husk.swarm.model.node import Machine, Node, NodeDescription, NodeStatus
from husk.swarm.model.settings import NodeSpec
from husk.swarm.model.swarm import Membership
from husk.swarm.state.records import SwarmRecords
from tests.support.waiting import soon, until_async
from tests.unit.swarm.state.test_records import news
from tests.unit.swarm.swarm_room import SwarmRoom


def worker(id: str, hostname: str, **labels: str) -> Node:
    return Node(
        id=id, version=0, created_at="", updated_at="", spec=NodeSpec(role="worker", labels=labels),
        description=NodeDescription(hostname=hostname), status=NodeStatus(state="ready", addr="192.0.2.9"),
    )  # fmt: skip


@pytest.fixture
async def room(tmp_path: Path, state: StateStore) -> AsyncIterator[SwarmRoom]:
    made = SwarmRoom(tmp_path, state)
    await made.init()
    for node in (worker("w1abc", "beta", disk="ssd"), worker("w1xyz", "gamma"), worker("w2", "gamma")):
        await made.store.save(node)
    yield made


def listed(room: SwarmRoom, **filters: str) -> list[str]:
    words = {name.replace("_", "."): [value] for name, value in filters.items()}
    return [node.description.hostname for node in room.nodes.listing(Filters(words))]


def test_nodes_are_found_as_docker_finds_them(room: SwarmRoom) -> None:
    assert room.nodes.find("self").id == room.nodes.find("alpha").id == room.cluster.node_id == room.nodes.leader
    assert room.nodes.find("beta").id == room.nodes.find("w1a").id == "w1abc"
    for ambiguous in ("gamma", "w1"):
        with pytest.raises(InvalidParameter, match="ambiguous"):
            room.nodes.find(ambiguous)
    for nobody in ("", "delta"):
        with pytest.raises(NotFound, match="not found"):
            room.nodes.find(nobody)


def test_nodes_are_listed_by_what_they_are(room: SwarmRoom) -> None:
    assert listed(room) == ["alpha", "beta", "gamma", "gamma"]
    assert listed(room, role="worker", name="ga") == ["gamma", "gamma"]
    assert listed(room, node_label="disk=ssd") == ["beta"] and listed(room, id="w2") == ["gamma"]
    assert listed(room, membership="pending") == []
    with pytest.raises(InvalidParameter):
        listed(room, role="king")


async def test_who_has_seen_an_older_version_changes_nothing(room: SwarmRoom) -> None:
    node = room.nodes.find("beta")
    before, after = await room.nodes.update("beta", NodeSpec(role="", availability="pause"), node.version)
    assert (before.spec.availability, after.spec.availability, after.spec.role) == ("active", "pause", "worker")
    with pytest.raises(InvalidParameter, match="out of sequence"):
        await room.nodes.update("beta", NodeSpec(role="worker"), node.version)
    with pytest.raises(InvalidParameter, match="Role"):
        await room.nodes.update("beta", NodeSpec(role="king"), after.version)
    assert room.nodes.find("beta").spec.availability == "pause"


async def test_words_are_known_in_whatever_letters(room: SwarmRoom) -> None:
    seen = room.cluster.node.version
    _, after = await room.nodes.update("self", NodeSpec(role="Manager", availability="DRAIN"), seen)
    assert (after.spec.role, after.spec.availability, after.manager is None) == ("manager", "drain", False)


async def test_the_last_manager_stays_one(room: SwarmRoom) -> None:
    with pytest.raises(InvalidParameter, match="last manager"):
        await room.nodes.update("self", NodeSpec(role="worker"), room.cluster.node.version)
    _, promoted = await room.nodes.update("beta", NodeSpec(role="manager"), room.nodes.find("beta").version)
    assert promoted.manager is not None and promoted.manager.addr == "192.0.2.9:2377"
    _, demoted = await room.nodes.update("self", NodeSpec(role="worker"), room.cluster.node.version)
    assert demoted.manager is None and [node.id for node in room.nodes.managers()] == ["w1abc"]


async def test_only_what_is_down_or_forced_is_removed(room: SwarmRoom) -> None:
    with pytest.raises(InvalidParameter, match="demoted"):
        await room.nodes.remove("self", force=True)
    with pytest.raises(InvalidParameter, match="not down"):
        await room.nodes.remove("beta", force=False)
    await room.nodes.mark("w1abc", "down", "heartbeat failure")
    await room.nodes.remove("beta", force=False)
    await room.nodes.remove("w1xyz", force=True)
    assert listed(room) == ["alpha", "gamma"]


async def test_what_a_node_is_and_how_it_is_are_written_where_they_are_new(room: SwarmRoom) -> None:
    await room.nodes.mark("w2", "down", "gone")
    version = room.nodes.find("w2").version
    await room.nodes.mark("w2", "down", "gone")
    await room.nodes.mark("nobody", "down")
    assert room.nodes.find("w2").version == version
    await room.nodes.describe("w2", NodeDescription(hostname="delta"))
    status = room.nodes.find("delta").status
    assert status.since_ns and status == NodeStatus(
        state="down", addr="192.0.2.9", message="gone", since_ns=status.since_ns
    )


async def test_there_are_none_without_a_swarm(tmp_path: Path, state: StateStore) -> None:
    with pytest.raises(Unavailable):
        SwarmRoom(tmp_path, state).nodes.listing(Filters())


async def test_of_two_managers_that_demote_each_other_one_stays(room: SwarmRoom) -> None:
    """Each sees two, and nothing yet of what the other does at the same time."""
    await room.nodes.update("beta", NodeSpec(role="manager"), room.nodes.find("beta").version)
    other, told = SwarmRecords(room.store.store), list[str]()
    other.shared = room.store.shared = True

    async def hear(store: SwarmRecords) -> None:
        async for told_now in room.store.store.watch():
            store.take_in(told_now)

    async def demote(nodes: Nodes, store: SwarmRecords, id: str) -> None:
        try:
            await nodes.update(id, NodeSpec(role="worker"), store.nodes[id].version)
        except InvalidParameter as error:
            told.append(error.message)

    hearing = [soon(hear(store)) for store in (other, room.store)]
    await until_async(lambda: len(other.nodes) == len(room.store.nodes), "that both know all")
    elsewhere = Nodes(other, cast(Cluster, SimpleNamespace(swarm=None, node_id="w1abc")))
    await asyncio.gather(demote(room.nodes, room.store, "w1abc"), demote(elsewhere, other, room.cluster.node_id))
    for one in hearing:
        one.cancel()
    await asyncio.wait(hearing)
    assert len(told) == 1 and "last manager" in told[0], told
    assert len([node for node in other.nodes.values() if node.is_manager]) == 1


async def test_a_manager_that_goes_as_if_it_had_never_come_is_not_the_last(room: SwarmRoom) -> None:
    """Another manager has just demoted this one, and relies on it."""
    await room.nodes.update("beta", NodeSpec(role="manager"), room.nodes.find("beta").version)
    await room.nodes.update("w1xyz", NodeSpec(role="manager"), room.nodes.find("w1xyz").version)
    await room.nodes.forget("w1xyz")
    await room.nodes.forget("w1xyz")
    other = SwarmRecords(room.store.store)
    other.take_in(await news(room.store.store))
    other.shared = room.store.shared = True
    elsewhere = Nodes(other, cast(Cluster, SimpleNamespace(swarm=None, node_id="w1abc")))
    own = room.cluster.node_id
    await elsewhere.update(own, NodeSpec(role="worker"), other.nodes[own].version)
    going = soon(room.nodes.forget("w1abc"))
    await asyncio.sleep(0)
    room.store.take_in(await news(room.store.store))
    with pytest.raises(InvalidParameter, match="last manager"):
        await going
    assert [node.id for node in room.nodes.managers()] == ["w1abc"]


async def test_a_worker_that_another_manager_has_promoted_is_not_removed(room: SwarmRoom) -> None:
    other = SwarmRecords(room.store.store)
    other.take_in(await news(room.store.store))
    other.shared = room.store.shared = True
    elsewhere = Nodes(other, cast(Cluster, SimpleNamespace(swarm=None, node_id="w1abc")))
    await elsewhere.update("w1xyz", NodeSpec(role="manager"), other.nodes["w1xyz"].version)
    removing = asyncio.gather(room.nodes.remove("w1xyz", force=True), return_exceptions=True)
    await asyncio.sleep(0)
    room.store.take_in(await news(room.store.store))
    (refused,) = await removing
    assert isinstance(refused, InvalidParameter) and "must be demoted" in refused.message


@pytest.mark.parametrize("other_does", ["leave", "demote"])
async def test_a_swarm_of_two_managers_has_one_however_they_go_at_once(
    room: SwarmRoom, tmp_path: Path, other_does: str
) -> None:
    """This one leaves, and the other leaves, or is demoted by itself."""
    await room.nodes.update("beta", NodeSpec(role="manager"), room.nodes.find("beta").version)
    other = SwarmRecords(room.store.store)
    other.shared = room.store.shared = True
    theirs = room.nodes.find("beta").id

    async def hear(store: SwarmRecords) -> None:
        async for told_now in room.store.store.watch():
            store.take_in(told_now)

    hearing = [soon(hear(store)) for store in (other, room.store)]
    await until_async(lambda: len(other.nodes) == len(room.store.nodes), "that both know all")
    elsewhere = Nodes(other, cast(Cluster, SimpleNamespace(swarm=None, node_id=theirs)))
    if other_does == "leave":
        again = elsewhere_cluster(room, other, theirs)
        await asyncio.gather(room.cluster.leave(True), again.leave(True))
        assert await room.store.store.get("swarm", "default") is None, "the last one ended it"
    else:
        spec, version = NodeSpec(role="worker"), other.nodes[theirs].version
        results = await asyncio.gather(
            room.cluster.leave(True), elsewhere.update(theirs, spec, version), return_exceptions=True
        )
        (refused,) = [result for result in results if isinstance(result, InvalidParameter)]
        assert "last manager" in refused.message
        assert [node.id for node in other.nodes.values() if node.is_manager] == [theirs]
    for one in hearing:
        one.cancel()
    await asyncio.wait(hearing)


def elsewhere_cluster(room: SwarmRoom, store: SwarmRecords, node_id: str) -> Cluster:
    """The other manager's, which has the same records."""
    made = Cluster(room.state, store, room.sealer, {}, Machine(hostname="beta"))
    made.assume(Membership(node_id=node_id))
    return made


async def test_what_is_heard_while_it_is_asked_who_can_be_spared_counts(room: SwarmRoom) -> None:
    """Of two managers that demote each other each hears of the other before it writes, and after it has counted."""
    await room.nodes.update("beta", NodeSpec(role="manager"), room.nodes.find("beta").version)
    other = SwarmRecords(room.store.store)
    other.take_in(await news(room.store.store))
    other.shared = room.store.shared = True
    elsewhere = Nodes(other, cast(Cluster, SimpleNamespace(swarm=None, node_id="w1abc")))
    mine, asked = room.cluster.node_id, list[str]()

    async def meanwhile(node: Node) -> None:
        if not asked:
            asked.append(node.id)
            await elsewhere.update(mine, NodeSpec(role="worker"), other.nodes[mine].version)
            room.store.take_in(await news(room.store.store))

    nodes = Nodes(room.store, room.cluster, spare=meanwhile)
    with pytest.raises(InvalidParameter, match="last manager"):
        await nodes.update("beta", NodeSpec(role="worker"), room.nodes.find("beta").version)
    assert asked == ["w1abc"] and [node.id for node in room.nodes.managers()] == ["w1abc"]


async def test_a_manager_that_cannot_be_spared_stays_one(room: SwarmRoom) -> None:
    await room.nodes.update("beta", NodeSpec(role="manager"), room.nodes.find("beta").version)
    nodes = Nodes(room.store, room.cluster, spare=AsyncMock(side_effect=InvalidParameter("would lose their majority")))
    with pytest.raises(InvalidParameter, match="majority"):
        await nodes.update("self", NodeSpec(role="worker"), room.cluster.node.version)
    assert room.cluster.node.is_manager
    await nodes.update("self", NodeSpec(availability="pause"), room.cluster.node.version)
