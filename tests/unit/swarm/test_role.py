"""Remains where a host cannot have its new place; hosts that can are in tests/integration/services."""

import asyncio
from contextlib import closing
from pathlib import Path
from unittest.mock import AsyncMock

import msgspec
import pytest

from husk.errors import InvalidParameter, Unavailable
from husk.storage.state.store import StateStore
from husk.swarm import role as node_role
from husk.swarm.ca import authority
from husk.swarm.ca.identity import Identity
from husk.swarm.manager.ca_server import CAServer
from husk.swarm.manager.role import Noted
from husk.swarm.membership import joining
from husk.swarm.model.node import ManagerStatus, Node, NodeDescription
from husk.swarm.model.settings import JoinSettings, NodeSpec
from husk.swarm.model.swarm import KEY, Membership
from husk.swarm.port import enter as entering
from husk.swarm.port.enter import ManagerSecrets
from husk.swarm.port.join import JoinResult
from husk.swarm.port.messages import JoinRequest
from husk.swarm.state.transactions import Put
from husk.text.endpoints import HostPort
from tests.support.but import but
from tests.support.cluster_port import PortedSwarm
from tests.support.waiting import soon, until_async
from tests.unit.swarm.manager.test_role import FakeShared, placed, with_member
from tests.unit.swarm.membership.test_moving import swarm
from tests.unit.swarm.membership.test_nodes import worker
from tests.unit.swarm.swarm_room import SwarmRoom

WISH = JoinSettings(["127.0.0.1:9"], "token", "0.0.0.0:2377")


@pytest.fixture
async def room(tmp_path: Path, state: StateStore) -> SwarmRoom:
    made = SwarmRoom(tmp_path, state)
    await made.init()
    return made


async def _can() -> None:
    """There can be several managers."""


@pytest.fixture
def joined(room: SwarmRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    """The manager's office admits as a manager, over no wire."""
    ca_server = CAServer(room.store, room.cluster, room.certificates, lambda node: None, _can)

    async def admitted(wish: JoinSettings, description: NodeDescription) -> JoinResult:
        key, asked = authority.new_request()
        reply = await ca_server.admit("manager", JoinRequest(request=asked), "192.0.2.9")
        issued = authority.look(reply.certificate)
        assert issued.holder is not None
        return JoinResult(
            Identity(reply.roots, reply.certificate, key), issued.holder, issued, (HostPort("127.0.0.1", 9),)
        )

    async def given(managers: object, identity: object, request: bytes) -> ManagerSecrets:
        return ManagerSecrets(b"k" * 32, b"", "192.0.2.9", b"", b"", ())

    monkeypatch.setattr(joining, "join", admitted)
    monkeypatch.setattr(entering, "enter", given)


@pytest.mark.usefixtures("joined")
async def test_who_cannot_be_a_manager_is_nothing(tmp_path: Path) -> None:
    with closing(StateStore.open(tmp_path / "other.db")) as state:
        (tmp_path / "other").mkdir()
        other = SwarmRoom(tmp_path / "other", state, "beta")
        with pytest.raises(Unavailable, match="share an etcd that exists: start this daemon with the same"):
            await other.node_role.join(WISH)
        assert not other.cluster.node_id and not list((tmp_path / "other").iterdir())
        await other.services.close()


@pytest.mark.usefixtures("joined")
async def test_a_host_that_joins_is_pending_and_in_no_swarm_if_its_client_leaves_however_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(StateStore.open(tmp_path / "other.db")) as state:
        (tmp_path / "other").mkdir()
        other = SwarmRoom(tmp_path / "other", state, "beta")
        entered, left, forgotten = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def enter(managers: object, identity: object) -> object:
            entered.set()
            return await asyncio.Event().wait()

        async def withdraw(joined: JoinResult) -> None:
            left.set()
            await forgotten.wait()

        monkeypatch.setattr(other.node_role.manager_role, "enter", enter)
        monkeypatch.setattr(joining, "withdraw", withdraw)
        trying = soon(other.node_role.join(WISH))
        await entered.wait()
        assert other.cluster.pending and not other.cluster.active
        with pytest.raises(Unavailable, match="not a swarm manager"):
            _ = other.cluster.swarm
        trying.cancel()
        await left.wait()
        trying.cancel()
        await asyncio.sleep(0)
        forgotten.set()
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


async def test_a_worker_that_cannot_begin_has_not_joined(
    room: SwarmRoom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ca_server = CAServer(room.store, room.cluster, room.certificates, lambda node: None, _can)
    withdrawn = list[str]()

    async def admitted(wish: JoinSettings, description: NodeDescription) -> JoinResult:
        key, asked = authority.new_request()
        reply = await ca_server.admit("worker", JoinRequest(request=asked), "192.0.2.9")
        issued = authority.look(reply.certificate)
        assert issued.holder is not None
        return JoinResult(Identity(reply.roots, reply.certificate, key), issued.holder, issued, ())

    async def withdraw(joined: JoinResult) -> None:
        withdrawn.append(joined.holder.node)

    monkeypatch.setattr(joining, "join", admitted)
    monkeypatch.setattr(joining, "withdraw", withdraw)
    with closing(StateStore.open(tmp_path / "other.db")) as state:
        (tmp_path / "other").mkdir()
        other = SwarmRoom(tmp_path / "other", state, "beta")
        other.worker_fails = Unavailable("no thread is left")
        with pytest.raises(Unavailable, match="no thread"):
            await other.node_role.join(WISH)
        assert len(withdrawn) == 1 and not other.cluster.node_id and other.node_role.standing() is None
        assert not list((tmp_path / "other").iterdir())
        await other.services.close()


@pytest.mark.usefixtures("joined")
async def test_a_worker_that_cannot_be_promoted_works_on(tmp_path: Path) -> None:
    with closing(StateStore.open(tmp_path / "other.db")) as state:
        (tmp_path / "other").mkdir()
        other = SwarmRoom(tmp_path / "other", state, "beta")
        place = Membership(node_id="n", role="worker", managers=["127.0.0.1:9"])
        await other.cluster.enrol(place)
        await other.node_role.work(place)
        first = other.node_role.worker
        first.identity = PortedSwarm().identity("n", "manager")  # type: ignore[union-attr, misc]
        with pytest.raises(Unavailable, match="share an etcd"):
            await other.node_role._rise()
        assert other.cluster.worker == place and other.node_role.worker is first
        # The swarm has changed its mind meanwhile.
        first.identity = PortedSwarm().identity("n", "worker")  # type: ignore[union-attr, misc]
        await other.node_role._rise()
        assert other.node_role.worker is first
        await other.services.close()


async def test_a_manager_stays_what_the_swarm_wants(room: SwarmRoom) -> None:
    await room.node_role._step_down()
    await room.node_role._rise()
    assert room.cluster.active and room.node_role.worker is None
    room.node_role.manager_role.take_part()
    await room.node_role.manager_role.lay_down()
    assert room.cluster.active and not room.store.shared


async def test_a_manager_that_steps_down_is_in_the_swarm_all_along(
    room: SwarmRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state that `docker info` goes by, whenever anything waits."""
    await demote(room, monkeypatch)
    own, seen = room.cluster.node_id, list[tuple[bool, object]]()
    lay_down, enrol = room.node_role.manager_role.lay_down, room.cluster.enrol

    def look() -> None:
        standing = room.node_role.standing()
        seen.append((room.cluster.active, standing and standing.managers))

    async def laid_down(noted: Noted, *, forced: bool) -> None:
        look()
        await lay_down(noted, forced=forced)
        room.store.alone(room.store.store)
        look()

    async def enrolled(membership: Membership, *, happened: bool = False) -> None:
        look()
        await enrol(membership, happened=happened)
        look()

    monkeypatch.setattr(room.node_role.manager_role, "lay_down", laid_down)
    monkeypatch.setattr(room.cluster, "enrol", enrolled)
    await room.node_role._step_down()
    managers = (("", "192.0.2.7:2377"),)
    assert seen == [(True, None), (False, managers), (False, managers), (False, managers)]
    assert room.cluster.worker is not None and room.cluster.between is None and room.cluster.node_id == own
    await room.services.close()


async def test_a_manager_that_cannot_step_down_tries_again_from_there(
    room: SwarmRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk, when the office is laid down already."""
    await demote(room, monkeypatch)
    enrol, tries = room.cluster.enrol, list[Membership]()

    async def laid_down(noted: Noted, *, forced: bool) -> None:
        room.store.alone(room.store.store)

    async def enrolled(membership: Membership, *, happened: bool = False) -> None:
        tries.append(membership)
        if len(tries) == 1:
            raise Unavailable("no space left on device")
        await enrol(membership, happened=happened)

    monkeypatch.setattr(room.node_role.manager_role, "lay_down", laid_down)
    monkeypatch.setattr(room.cluster, "enrol", enrolled)
    with pytest.raises(Unavailable):
        await room.node_role._step_down()
    assert room.cluster.worker is None and room.node_role.standing() is not None
    await room.node_role._step_down()
    assert room.cluster.worker is not None and room.cluster.worker is tries[1] is tries[0]
    assert room.node_role.worker is not None and room.cluster.between is None
    await room.node_role._step_down()  # nothing is left to do
    assert len(tries) == 2
    await room.services.close()


async def test_a_failure_in_laying_down_is_gone_on_from(
    room: SwarmRoom, state: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    sharing = await with_member(room, monkeypatch)
    await demote(room, monkeypatch)
    found, faults = list[tuple[str, str]](), iter([OSError("busy"), None])

    def wipe() -> None:
        found.append((placed(state).role, placed(state).store))
        if (fault := next(faults)) is not None:
            raise fault

    monkeypatch.setattr(node_role, "AGAIN", 0.01)
    monkeypatch.setattr(room.etcd_membership, "_wipe", wipe)
    room.node_role.demoted()
    await until_async(lambda: room.node_role.worker is not None, "it works")
    # A daemon that dies meanwhile is a worker when it is back, and misses no file.
    assert found == [("worker", "")] * 2
    assert (
        sharing.told == ["part", "part", "close"]
        and room.node_role.manager_role.shared is None
        and not room.store.shared
    )
    assert room.cluster.between is None and room.cluster.worker is not None and not room.store.nodes
    await room.services.close()


@pytest.mark.usefixtures("joined")
async def test_a_manager_that_loses_the_store_as_it_joins_has_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its member of etcd is there already, and the records are followed."""
    with closing(StateStore.open(tmp_path / "other.db")) as state:
        (tmp_path / "other").mkdir()
        other = SwarmRoom(tmp_path / "other", state, "beta")
        shared, wiped = FakeShared(), list[str]()

        async def enter(managers: object, identity: object) -> tuple[ManagerSecrets, bytes]:
            return ManagerSecrets(b"k" * 32, b"", "192.0.2.9", b"", b"", ("192.0.2.1:2379",)), b""

        async def bring(node: str, *_: object) -> FakeShared:
            await other.cluster.note_store(other.etcd_membership.where([HostPort("192.0.2.9", 2379)]), {})
            return shared

        async def away(*_: object) -> None:
            raise Unavailable("the cluster store has lost the majority")

        async def departed(*, forced: bool) -> None:
            wiped.append("departed")

        monkeypatch.setattr(other.node_role.manager_role, "enter", enter)
        monkeypatch.setattr(other.node_role.manager_role, "_bring_member", bring)
        monkeypatch.setattr(other.etcd_membership, "depart", departed)
        monkeypatch.setattr(other.etcd_membership, "_wipe", lambda: wiped.append(placed(state).store))
        monkeypatch.setattr(other.store, "refresh", away)
        with pytest.raises(Unavailable, match="majority"):
            await other.node_role.join(WISH)
        assert (
            wiped == ["departed", ""]
            and shared.told == ["part", "close"]
            and other.node_role.manager_role.shared is None
        )
        assert not other.cluster.node_id and not list((tmp_path / "other").iterdir())
        await other.services.close()


async def demote(room: SwarmRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is another manager, and the swarm wants this one to be a worker."""
    other = worker("m", "gamma")
    other = but(other, spec=NodeSpec(role="manager"), manager=ManagerStatus(addr="192.0.2.7:2377"))
    await room.store.save(other)
    await room.store.amend(room.cluster.node, demoted)
    renews(room, monkeypatch)


def renews(room: SwarmRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other manager gives this one a worker's certificate."""

    async def renewed(endpoints: list[HostPort]) -> Identity:
        return PortedSwarm().identity(room.cluster.node_id, "worker")

    monkeypatch.setattr(room.node_role, "_renewed", renewed)
    # Nobody asks members of etcd that are not there.
    monkeypatch.setattr(room.etcd_membership, "spare", AsyncMock())


def demoted(node: Node) -> Node:
    return but(node, spec=NodeSpec(role="worker"), manager=None)


async def test_who_leaves_has_nothing_that_was_prepared(room: SwarmRoom, tmp_path: Path) -> None:
    await room.certificates.prepare("worker", PortedSwarm().identity("n", "worker"))
    assert {path.name for path in tmp_path.glob("*.worker.*")} == {"swarm.worker.key", "swarm.worker.node"}
    await room.certificates.prepare("manager", PortedSwarm().identity("n", "manager"), (b"k" * 32, b"u" * 32))
    assert {path.name for path in tmp_path.glob("*.manager.*")} == {"swarm.manager.lock", "swarm.manager.node"}
    await room.certificates.forget()
    assert [path.name for path in tmp_path.glob("swarm.*")] == ["swarm.key"]


async def test_a_manager_that_is_wanted_again_does_not_step_down_to_the_end(
    room: SwarmRoom, state: StateStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most managers were lost while it stepped down, and it is to go on alone: it has the only records left."""
    shared = await with_member(room, monkeypatch)
    await demote(room, monkeypatch)
    tried, wiped = list[str](), list[str]()

    async def kept(*, forced: bool) -> None:
        tried.append("depart")
        raise Unavailable("the cluster store has lost the majority")

    monkeypatch.setattr(node_role, "AGAIN", 0.01)
    monkeypatch.setattr(room.etcd_membership, "depart", kept)
    monkeypatch.setattr(room.etcd_membership, "_wipe", lambda: wiped.append("all"))
    monkeypatch.setattr(room.etcd_membership, "start_alone", AsyncMock())
    monkeypatch.setattr(type(room.etcd_membership), "runs", property(lambda etcd_membership: etcd_membership.here))
    room.node_role.demoted()
    await until_async(lambda: len(tried) > 1, "the others keep its member")
    assert room.cluster.between is not None and list(tmp_path.glob("*.worker.*"))
    room.listener.told.clear()
    await room.node_role.manager_role.start_over()
    own = room.cluster.node_id
    await until_async(lambda: room.cluster.between is None, "it stays what it was")
    before = len(tried)
    room.node_role.demoted()
    await asyncio.sleep(0.05)
    assert wiped == [] and len(tried) == before and room.node_role.worker is None
    assert placed(state).role == "manager" and placed(state).store and room.cluster.node_id == own
    assert room.store.nodes[own].is_manager and room.store.shared is False
    assert shared.told[-1] == "take part" and "open" in room.listener.told and not list(tmp_path.glob("*.worker.*"))
    assert room.node_role.standing() is None and room.node_role.manager_role.etcd_membership.here
    await room.services.close()
