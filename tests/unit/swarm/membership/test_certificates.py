import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from husk.aio.tasks import Tasks
from husk.errors import Unavailable
from husk.storage.state.store import StateStore
from husk.swarm.ca import authority
from husk.swarm.ca.holders import Holder
from husk.swarm.ca.identity import Identity
from husk.swarm.membership.certificates import NodeCertificates
from husk.swarm.model.node import Node
from husk.swarm.model.services import SECOND
from husk.swarm.model.settings import CAConfig, NodeSpec
from husk.swarm.model.swarm import Swarm, Trust
from husk.swarm.state.transactions import NEW
from tests.support.but import but
from tests.support.clock import FakeClock
from tests.unit.api.swarm import locked
from tests.unit.swarm.swarm_room import SwarmRoom


@pytest.fixture
async def room(tmp_path: Path, state: StateStore) -> SwarmRoom:
    made = SwarmRoom(tmp_path, state)
    await made.init()
    return made


def trust_of(room: SwarmRoom) -> Trust:
    trust = room.cluster.swarm.trust
    assert trust is not None
    return trust


async def rotate(room: SwarmRoom, number: int = 1) -> None:
    swarm = room.cluster.swarm
    spec = msgspec.structs.replace(swarm.spec, ca_config=CAConfig(force_rotate=number))
    await room.cluster.update(spec, swarm.version, worker_token=False, manager_token=False, unlock_key=False)


async def worker(room: SwarmRoom) -> Node:
    made = Node(id="w", version=NEW, created_at="", updated_at="", spec=NodeSpec(role="worker"))
    made = but(made, issuer=trust_of(room).signing.key_id)
    await room.store.save(made)
    return made


async def test_a_manager_makes_its_own_and_keeps_it(room: SwarmRoom, tmp_path: Path, state: StateStore) -> None:
    made = await room.certificates.identity()
    assert authority.look(made.certificate).holder == Holder(room.cluster.node_id, "manager", room.cluster.swarm.id)
    assert made.roots.decode() == trust_of(room).root.certificate
    assert await room.certificates.identity() == made
    assert await SwarmRoom(tmp_path, state).certificates.identity() == made
    assert 0.5 <= await room.certificates.wait(made) / (90 * 86400) <= 0.8
    await room.certificates.forget()
    assert not (tmp_path / "swarm.node").exists()


async def test_one_that_will_not_do_is_made_again(room: SwarmRoom, tmp_path: Path) -> None:
    made = await room.certificates.identity()
    in_80_days = FakeClock(time.time_ns() + 80 * 86400 * SECOND)
    late = NodeCertificates(room.store, room.cluster, room.sealer, tmp_path / "swarm.node", in_80_days)
    renewed = await late.identity()
    assert renewed != made and renewed.roots == made.roots
    (tmp_path / "swarm.node" / "node.key").write_bytes(b"x" * 64)
    again = await room.certificates.identity()
    assert again not in (made, renewed) and again.roots == made.roots


async def test_the_moment_of_a_renewal_stays_and_goes_by_the_clock_as_it_is(room: SwarmRoom, tmp_path: Path) -> None:
    made, clock = await room.certificates.identity(), FakeClock(time.time_ns())
    later = NodeCertificates(room.store, room.cluster, room.sealer, tmp_path / "swarm.node", clock)
    first = await later.wait(made)
    clock.pass_by(86400 * SECOND)
    assert await later.wait(made) == pytest.approx(first - 86400, abs=1)
    clock.wall += 365 * 86400 * SECOND
    assert await later.wait(made) == 0, "the clock was set"
    clock.wall -= 2 * 365 * 86400 * SECOND
    assert await later.wait(made) == 0, "it is from the future, and good for nobody"
    renewed = await later.identity()
    assert renewed != made and await later.wait(renewed) > 40 * 86400


async def test_expiry_is_the_swarms(room: SwarmRoom) -> None:
    room.cluster.swarm.spec.ca_config.node_cert_expiry = 7200 * 10**9
    _, request = authority.new_request()
    said = authority.look(await room.certificates.issue("w", "worker", request))
    assert said.holder == Holder("w", "worker", room.cluster.swarm.id) and abs(said.ends - time.time() - 7200) < 60


async def test_alone_a_new_root_is_there_at_once(room: SwarmRoom) -> None:
    before = await room.certificates.identity()
    assert not await room.certificates.settle(), "nothing is to be done"
    await rotate(room)
    old = trust_of(room)
    assert old.next is not None
    assert await room.certificates.settle()
    assert trust_of(room) == Trust(root=old.next)
    after = await room.certificates.identity()
    assert after.roots.decode() == old.next.certificate and after != before
    assert authority.signed_by(after.certificate, [after.roots])
    assert room.cluster.node.issuer == old.next.key_id


async def test_a_new_root_waits_for_all_nodes(room: SwarmRoom) -> None:
    other = await worker(room)
    await rotate(room)
    await room.certificates.settle()
    trust = trust_of(room)
    assert trust.next is not None, "the worker has an old one"
    assert (await room.certificates.identity()).roots.decode() == trust.roots, "both are believed meanwhile"
    room.certificates.note(other.id, trust.root.key_id)
    assert not await room.certificates.settle() and trust_of(room).next is not None, "it has shown its old one"
    room.certificates.note(other.id, trust.next.key_id)
    assert trust_of(room).next is not None, "whoever hears of it changes nothing"
    async with asyncio.timeout(5):
        await room.certificates.noted(60)
    assert await room.certificates.settle()
    assert trust_of(room).next is None and trust_of(room).root == trust.next
    await room.certificates.changed(0.01)


async def test_a_root_that_nobody_has_is_never_the_last_one(room: SwarmRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another replacement begins at the moment in which the first one ends."""
    await rotate(room)
    amend = room.store.amend

    async def late(record: Any, change: Any, **others: Any) -> bool:
        if isinstance(record, Swarm):
            monkeypatch.undo()
            await rotate(room, 2)
        return await amend(record, change, **others)

    monkeypatch.setattr(room.store, "amend", late)
    await room.certificates.settle()
    assert trust_of(room).next is not None and room.cluster.node.issuer != trust_of(room).signing.key_id
    await room.certificates.settle()
    assert trust_of(room).next is None and room.cluster.node.issuer == trust_of(room).root.key_id


async def test_no_key_comes_back_after_the_swarm_was_left(
    room: SwarmRoom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that makes a certificate goes on when its caller is cancelled."""
    begun, go_on = threading.Event(), threading.Event()
    make = room.certificates._make

    def slow(swarm: Swarm, node: str) -> Identity:
        begun.set()
        go_on.wait(10)
        return make(swarm, node)

    monkeypatch.setattr(room.certificates, "_make", slow)
    tasks = Tasks()
    renewing = tasks.spawn(room.certificates.renew(), "renewal", awaited=True)
    await asyncio.to_thread(begun.wait, 10)
    renewing.cancel()
    forgetting = tasks.spawn(room.certificates.forget(), "leave", awaited=True)
    await asyncio.sleep(0.05)
    assert not forgetting.done(), "it waits for what was begun"
    go_on.set()
    await forgetting
    await tasks.cancel_all()
    assert not (tmp_path / "swarm.node").exists()


async def test_one_that_was_begun_to_be_kept_is_gone_when_it_is_forgotten(room: SwarmRoom, tmp_path: Path) -> None:
    made = await room.certificates.identity()
    tasks = Tasks()
    keeping = tasks.spawn(room.certificates.keep(made), "join", awaited=True)
    await asyncio.sleep(0)
    keeping.cancel()
    await room.certificates.forget()
    await tasks.join()
    assert keeping.cancelled() and not (tmp_path / "swarm.node").exists()


@pytest.mark.parametrize("name", ["node.crt", "roots.crt", "node.key"])
async def test_one_that_the_disk_has_damaged_is_made_again(room: SwarmRoom, tmp_path: Path, name: str) -> None:
    made = await room.certificates.identity()
    (tmp_path / "swarm.node" / name).write_bytes(b"\xff damaged")
    again = await room.certificates.identity()
    assert again != made and again.roots == made.roots


async def test_a_locked_swarm_shows_nobody_its_key(room: SwarmRoom, tmp_path: Path, state: StateStore) -> None:
    from tests.unit.api.fake_engine import FakeEngine

    await room.certificates.identity()
    again = await locked(room, FakeEngine(), tmp_path)
    assert not await again.certificates.settle()
    with pytest.raises(Unavailable):
        await again.certificates.identity()
    assert b"PRIVATE KEY" not in (tmp_path / "swarm.node" / "node.key").read_bytes()
