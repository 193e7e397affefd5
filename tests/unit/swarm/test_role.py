"""Remains where a host cannot have its new place; hosts that can are in tests/integration/services."""

import asyncio
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from husk.config import ClusterStoreConfig
from husk.errors import InvalidParameter, Unavailable
from husk.storage.state.store import StateStore
from husk.swarm.ca import authority
from husk.swarm.ca.holders import Role
from husk.swarm.ca.identity import Identity
from husk.swarm.manager.ca_server import CAServer
from husk.swarm.model.node import ManagerStatus, Node, NodeDescription
from husk.swarm.model.settings import JoinSettings, NodeSpec
from husk.swarm.model.swarm import KEY, Membership
from husk.swarm.port.enter import ManagerSecrets
from husk.swarm.port.join import JoinResult
from husk.swarm.port.messages import JoinRequest
from husk.swarm.state.etcd.members import KnownMember
from husk.swarm.state.sqlite import SqliteStore
from husk.swarm.state.transactions import Put
from husk.text.endpoints import HostPort
from tests.support.but import but
from tests.support.cluster_port import PortedSwarm
from tests.support.tapped_store import TappedStore
from tests.support.waiting import soon, until_async
from tests.unit.swarm.manager.test_role import FakeShared, placed, with_member
from tests.unit.swarm.membership.test_moving import swarm
from tests.unit.swarm.membership.test_nodes import worker
from tests.unit.swarm.swarm_room import FakeEntrance, SwarmRoom

WISH = JoinSettings(["127.0.0.1:9"], "token", "0.0.0.0:2377")


@pytest.fixture
async def room(tmp_path: Path, state: StateStore) -> SwarmRoom:
    made = SwarmRoom(tmp_path, state)
    await made.init()
    return made


async def _can() -> None:
    """There can be several managers."""


def admitting(room: SwarmRoom, role: Role) -> FakeEntrance:
    """The room's manager admits as one of this role, over no wire."""
    entrance = FakeEntrance()
    ca_server = CAServer(room.store, room.cluster, room.certificates, lambda node: None, _can)

    async def admit(wish: JoinSettings, description: NodeDescription) -> JoinResult:
        key, asked = authority.new_request()
        reply = await ca_server.admit(role, JoinRequest(request=asked), "192.0.2.9")
        issued = authority.look(reply.certificate)
        assert issued.holder is not None
        return JoinResult(
            Identity(reply.roots, reply.certificate, key), issued.holder, issued, (HostPort("127.0.0.1", 9),)
        )

    entrance.admit, entrance.secrets = admit, ManagerSecrets(b"k" * 32, b"", "192.0.2.9", b"", b"", ())
    return entrance


@pytest.fixture
def joined(room: SwarmRoom) -> FakeEntrance:
    """The manager's office admits as a manager."""
    return admitting(room, "manager")


async def changed(room: SwarmRoom) -> None:
    """Until the change of this host's place is over that has just begun, be it that it failed."""
    await asyncio.sleep(0)
    async with room.node_role.changing:
        pass


async def test_who_cannot_be_a_manager_is_nothing(tmp_path: Path, joined: FakeEntrance) -> None:
    with closing(StateStore.open(tmp_path / "other.db")) as state:
        (tmp_path / "other").mkdir()
        other = SwarmRoom(tmp_path / "other", state, "beta", entrance=joined)
        with pytest.raises(Unavailable, match="share an etcd that exists: start this daemon with the same"):
            await other.node_role.join(WISH)
        assert not other.cluster.node_id and not list((tmp_path / "other").iterdir())
        await other.services.close()


async def test_a_host_that_joins_is_pending_and_in_no_swarm_if_its_client_leaves_however_often(
    tmp_path: Path, joined: FakeEntrance
) -> None:
    with closing(StateStore.open(tmp_path / "other.db")) as state:
        (tmp_path / "other").mkdir()
        other = SwarmRoom(tmp_path / "other", state, "beta", entrance=joined)
        joined.may_enter.clear()
        joined.may_withdraw.clear()
        trying = soon(other.node_role.join(WISH))
        await joined.entered.wait()
        assert other.cluster.pending and not other.cluster.active
        with pytest.raises(Unavailable, match="not a swarm manager"):
            _ = other.cluster.swarm
        trying.cancel()
        await joined.withdrawing.wait()
        trying.cancel()
        await asyncio.sleep(0)
        joined.may_withdraw.set()
        with pytest.raises(asyncio.CancelledError):
            await trying
        assert not other.cluster.pending and not other.cluster.node_id and not list((tmp_path / "other").iterdir())
        await other.services.close()


async def test_a_swarm_of_which_no_news_came_yet_can_be_joined(tmp_path: Path) -> None:
    with closing(StateStore.open(tmp_path / "other.db")) as state:
        other = SwarmRoom(tmp_path, state, "beta")
        other.node_role.manager_role.shared = FakeShared()  # type: ignore[assignment]
        with pytest.raises(Unavailable, match="holds no swarm yet"):
            await other.node_role.join(WISH)
        await other.store.store.commit(Put("swarm", KEY, msgspec.json.encode(swarm())))
        with pytest.raises(InvalidParameter, match="valid join token is necessary"):
            await other.node_role.join(WISH)


async def test_a_worker_that_cannot_begin_has_not_joined(room: SwarmRoom, tmp_path: Path) -> None:
    entrance = admitting(room, "worker")
    with closing(StateStore.open(tmp_path / "other.db")) as state:
        (tmp_path / "other").mkdir()
        other = SwarmRoom(tmp_path / "other", state, "beta", entrance=entrance)
        other.worker_fails = Unavailable("no thread is left")
        with pytest.raises(Unavailable, match="no thread"):
            await other.node_role.join(WISH)
        assert len(entrance.withdrawn) == 1 and not other.cluster.node_id and other.node_role.standing() is None
        assert not list((tmp_path / "other").iterdir())
        await other.services.close()


async def test_a_worker_that_cannot_be_promoted_works_on(
    tmp_path: Path, joined: FakeEntrance, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(StateStore.open(tmp_path / "other.db")) as state:
        (tmp_path / "other").mkdir()
        other = SwarmRoom(tmp_path / "other", state, "beta", entrance=joined, again=0.01)
        place = Membership(node_id="n", role="worker", managers=["127.0.0.1:9"])
        await other.cluster.enrol(place)
        await other.node_role.work(place)
        first = other.node_role.worker
        first.identity = PortedSwarm().identity("n", "manager")  # type: ignore[union-attr, misc]
        other.node_role.promoted()
        await until_async(lambda: caplog.text.count("share an etcd") > 1, "it tries, and tries again")
        assert other.cluster.worker == place and other.node_role.worker is first
        # The swarm has changed its mind meanwhile.
        first.identity = PortedSwarm().identity("n", "worker")  # type: ignore[union-attr, misc]
        await changed(other)
        tries = caplog.text.count("share an etcd")
        other.node_role.promoted()
        await changed(other)
        assert other.node_role.worker is first and caplog.text.count("share an etcd") == tries
        await other.services.close()


async def test_a_manager_stays_what_the_swarm_wants(room: SwarmRoom) -> None:
    room.node_role.demoted()
    await changed(room)
    room.node_role.promoted()
    await changed(room)
    assert room.cluster.active and room.node_role.worker is None
    room.node_role.manager_role.take_part()
    await room.node_role.manager_role.lay_down()
    assert room.cluster.active and not room.store.shared


async def test_a_manager_that_steps_down_is_in_the_swarm_all_along(room: SwarmRoom) -> None:
    """The state that `docker info` goes by, whenever anything waits."""
    seen = list[tuple[bool, object]]()

    def look() -> None:
        standing = room.node_role.standing()
        seen.append((room.cluster.active, standing and standing.managers))

    await with_member(room, look)
    await demote(room)
    own = room.cluster.node_id
    room.node_role.demoted()
    await changed(room)
    look()
    managers = (("", "192.0.2.7:2377"),)
    assert seen == [(True, None), (False, managers), (False, managers)]
    assert room.cluster.worker is not None and room.cluster.between is None and room.cluster.node_id == own
    await room.services.close()


async def test_a_manager_that_cannot_step_down_tries_again_from_there(
    tmp_path: Path, state: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk, when the office is laid down already."""
    room = SwarmRoom(tmp_path, state, again=0.01)
    await room.init()
    shared = await with_member(room)
    await demote(room)
    enrol, tries, standing = room.cluster.enrol, list[Membership](), list[object]()

    async def enrolled(membership: Membership, *, happened: bool = False) -> None:
        tries.append(membership)
        standing.append(room.node_role.standing())
        if len(tries) == 2:
            raise Unavailable("no space left on device")
        await enrol(membership, happened=happened)

    monkeypatch.setattr(room.cluster, "enrol", enrolled)
    room.node_role.demoted()
    await until_async(lambda: room.node_role.worker is not None, "it works")
    await changed(room)
    assert (
        standing[0] is None
        and all(standing[1:])
        and len(tries) == 3
        and tries[0] is tries[1] is tries[2] is room.cluster.worker
    )
    assert room.cluster.between is None and shared.told == ["part", "close"]
    room.node_role.demoted()  # nothing is left to do
    await changed(room)
    assert len(tries) == 3
    await room.services.close()


async def test_a_failure_in_laying_down_is_gone_on_from(tmp_path: Path, state: StateStore) -> None:
    room = SwarmRoom(tmp_path, state, again=0.01)
    await room.init()
    sharing = await with_member(room)
    (tmp_path / "swarm.etcd").mkdir()
    await demote(room)
    found, faults = list[tuple[str, str]](), iter([OSError("busy"), None])

    def wipe(directory: Path) -> None:
        found.append((placed(state).role, placed(state).store))
        if (fault := next(faults)) is not None:
            raise fault

    room.etcd.on_wipe = wipe
    room.node_role.demoted()
    await until_async(lambda: room.node_role.worker is not None, "it works")
    await changed(room)
    # A daemon that dies meanwhile is a worker when it is back, and misses no file.
    assert found == [("worker", "")] * 2
    assert (
        sharing.told == ["part", "part", "close"]
        and room.node_role.manager_role.shared is None
        and not room.store.shared
    )
    assert room.cluster.between is None and room.cluster.worker is not None and not room.store.nodes
    await room.services.close()


async def test_a_manager_that_loses_the_store_as_it_joins_has_nothing_of_it(
    tmp_path: Path, joined: FakeEntrance
) -> None:
    """Its member of etcd is there already, and the records are followed."""
    joined.secrets = ManagerSecrets(b"k" * 32, b"", "192.0.2.9", b"root", b"certificate", ("192.0.2.1:2379",))
    with closing(StateStore.open(tmp_path / "other.db")) as state, closing(StateStore.open(tmp_path / "etcd")) as etcd:
        (tmp_path / "other").mkdir()
        store, wiped = TappedStore(SqliteStore(etcd)), list[str]()
        there = but(worker("m", "gamma"), spec=NodeSpec(role="manager"), status__addr="192.0.2.1")
        await store.commit(Put("node", "m", msgspec.json.encode(there)))

        async def away(*_: object) -> None:
            raise Unavailable("the cluster store has lost the majority")

        def opener(where: ClusterStoreConfig) -> TappedStore:
            store.on_get = away
            return store

        other = SwarmRoom(tmp_path / "other", state, "beta", entrance=joined, opener=opener)
        other.etcd.known = [KnownMember(2, "other", HostPort("192.0.2.9", 2380), learns=False)]
        other.etcd.on_wipe = lambda directory: wiped.append(placed(state).store)
        with pytest.raises(Unavailable, match="majority"):
            await other.node_role.join(WISH)
        assert other.etcd.asked[-1] == ("remove", HostPort("192.0.2.9", 2380))
        assert wiped == [""] and other.etcd.made[-1].told[-1] == "stop"
        assert other.node_role.manager_role.shared is None and len(joined.withdrawn) == 1
        assert not other.cluster.node_id and not list((tmp_path / "other").iterdir())
        await other.services.close()


async def demote(room: SwarmRoom) -> None:
    """There is another manager, and the swarm wants this one to be a worker."""
    other = worker("m", "gamma")
    other = but(other, spec=NodeSpec(role="manager"), manager=ManagerStatus(addr="192.0.2.7:2377"))
    await room.store.save(other)
    await room.certificates.identity()
    await room.store.amend(room.cluster.node, demoted)
    renews(room)


def renews(room: SwarmRoom) -> None:
    """The other manager gives this one a worker's certificate."""
    room.entrance.renewal = PortedSwarm().identity(room.cluster.node_id, "worker")


def demoted(node: Node) -> Node:
    return but(node, spec=NodeSpec(role="worker"), manager=None)


async def test_who_leaves_has_nothing_that_was_prepared(room: SwarmRoom, tmp_path: Path) -> None:
    await room.certificates.prepare("worker", PortedSwarm().identity("n", "worker"))
    assert {path.name for path in tmp_path.glob("*.worker.*")} == {"swarm.worker.key", "swarm.worker.node"}
    await room.certificates.prepare("manager", PortedSwarm().identity("n", "manager"), (b"k" * 32, b"u" * 32))
    assert {path.name for path in tmp_path.glob("*.manager.*")} == {"swarm.manager.lock", "swarm.manager.node"}
    await room.certificates.forget()
    assert [path.name for path in tmp_path.glob("swarm.*")] == ["swarm.key"]


async def test_a_manager_that_is_wanted_again_does_not_step_down_to_the_end(tmp_path: Path, state: StateStore) -> None:
    """Most managers were lost while it stepped down, and it is to go on alone: it has the only records left."""
    room = SwarmRoom(tmp_path, state, again=0.01)
    await room.init()
    member = await room.begin_etcd()
    shared, wiped = await with_member(room), list[str]()
    await demote(room)
    room.etcd.known = [KnownMember(1, "own", HostPort("192.0.2.1", 2380), learns=False)]
    room.etcd.remove_fails = Unavailable("the cluster store has lost the majority")
    room.etcd.on_wipe = lambda directory: wiped.append("all")
    room.node_role.demoted()
    await until_async(lambda: len(room.etcd.asked) > 1, "the others keep its member")
    assert room.cluster.between is not None and list(tmp_path.glob("*.worker.*"))
    room.listener.told.clear()
    await room.node_role.manager_role.start_over()
    own = room.cluster.node_id
    await until_async(lambda: room.cluster.between is None, "it stays what it was")
    await changed(room)
    before = len(room.etcd.asked)
    room.node_role.demoted()
    await changed(room)
    assert wiped == [] and len(room.etcd.asked) == before and room.node_role.worker is None
    assert "stop" not in member.told and "start alone" in member.told
    assert placed(state).role == "manager" and placed(state).store and room.cluster.node_id == own
    assert room.store.nodes[own].is_manager and room.store.shared is False
    assert shared.told[-1] == "take part" and "open" in room.listener.told and not list(tmp_path.glob("*.worker.*"))
    assert room.node_role.standing() is None and room.node_role.manager_role.etcd_membership.here
    await room.services.close()
