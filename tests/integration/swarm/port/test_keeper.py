"""A node that keeps its certificate."""

import asyncio
import errno
import threading
import time

import pytest

from husk.aio.tasks import Tasks
from husk.errors import Unavailable
from husk.swarm.ca import authority, renewal
from husk.swarm.ca.authority import Signer
from husk.swarm.ca.holders import Holder
from husk.swarm.ca.identity import Identity
from husk.swarm.port import certificates, keeper
from husk.swarm.port.keeper import CertificateKeeper
from husk.swarm.port.managers import Managers
from husk.swarm.port.server import ClusterPort
from tests.support.cluster_port import PortedSwarm
from tests.support.waiting import until_async


class Node:
    def __init__(self, swarm: PortedSwarm) -> None:
        swarm.roles["w"] = "worker"
        self.saved: list[Identity] = []
        self.late = 0.0
        first = swarm.identity("w", "worker")
        self.managers = Managers([swarm.endpoint], first)
        self.keeper = CertificateKeeper(self.managers, self.saved.append, first, lambda: time.time() + self.late)


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "PATIENCE", 0.05)
    monkeypatch.setattr(keeper, "_PAUSE", 0.01)
    monkeypatch.setattr(renewal, "AGAIN_SOONEST", 0.05)
    monkeypatch.setattr(renewal, "AGAIN_LATEST", 0.05)


async def test_one_that_is_good_is_kept(swarm: PortedSwarm, port: ClusterPort) -> None:
    node = Node(swarm)
    await node.keeper.look()
    assert not node.saved
    await node.managers.close()


async def test_one_that_ends_is_renewed_before(swarm: PortedSwarm, port: ClusterPort) -> None:
    node = Node(swarm)
    before = node.keeper.identity
    node.late = 3000
    await node.keeper.look()
    assert node.saved == [node.keeper.identity] and node.keeper.identity != before
    assert node.keeper.identity.key != before.key and node.keeper.identity.roots == before.roots
    node.late = 0
    await node.keeper.look()
    assert len(node.saved) == 1
    await node.managers.close()


async def test_one_that_was_signed_by_a_clock_far_ahead_is_renewed_at_once(
    swarm: PortedSwarm, port: ClusterPort
) -> None:
    """Nobody believes in it yet, and its node has nothing else to ask for another one with."""
    node = Node(swarm)
    ahead = time.time() + 172 * 86400
    chain = authority.issue(
        authority.request_for(node.keeper.identity.key),
        Holder("w", "worker", swarm.swarm),
        Signer(swarm.now),
        600,
        ahead,
    )
    node.keeper.identity = node.keeper.identity._replace(certificate=chain)
    await node.managers.use(node.keeper.identity)
    await node.keeper.look()
    assert node.saved == [node.keeper.identity] and authority.look(node.keeper.identity.certificate).made < time.time()
    await node.managers.close()


async def test_another_role_and_another_root(swarm: PortedSwarm, port: ClusterPort) -> None:
    node = Node(swarm)
    swarm.roles["w"] = "manager"
    await node.keeper.look()
    holder = authority.look(node.keeper.identity.certificate).holder
    assert holder is not None and holder.role == "manager"
    swarm.next = authority.new_root(time.time())
    await node.keeper.look()
    assert node.keeper.identity.roots == swarm.roots and len(node.saved) == 2
    assert authority.signed_by(node.keeper.identity.certificate, [swarm.now.certificate]), "nobody asked for another"
    await node.managers.close()


async def test_managers_that_are_away_are_waited_for(
    swarm: PortedSwarm, port: ClusterPort, caplog: pytest.LogCaptureFixture
) -> None:
    node = Node(swarm)
    await port.close()
    tasks = Tasks()
    tasks.spawn(node.keeper.run(), "keeper")
    await until_async(lambda: "cannot be kept now" in caplog.text, "it says so")
    again = PortedSwarm(swarm.now)
    again.swarm, again.roles = swarm.swarm, {"first": "manager", "w": "manager"}
    async with again.opened():
        node.managers.know([again.endpoint])
        await until_async(lambda: node.saved, "it has another one")
        await asyncio.sleep(0)
    await tasks.cancel_all()
    await node.managers.close()


async def test_a_full_disk_does_not_end_it(
    swarm: PortedSwarm, port: ClusterPort, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = Node(swarm)
    swarm.roles["w"] = "manager"
    failing = [True]

    def save(identity: Identity) -> None:
        if failing:
            raise OSError(errno.ENOSPC, "No space left on device")
        node.saved.append(identity)

    monkeypatch.setattr(node.keeper, "_save", save)
    tasks = Tasks()
    tasks.spawn(node.keeper.run(), "keeper")
    await until_async(lambda: "No space left" in caplog.text, "it says so")
    failing.clear()
    await until_async(lambda: node.saved, "it has another one")
    await tasks.cancel_all()
    await node.managers.close()


async def test_nothing_is_written_after_it_has_ended(
    swarm: PortedSwarm, port: ClusterPort, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = Node(swarm)
    swarm.roles["w"] = "manager"
    begun, go_on = threading.Event(), threading.Event()

    def save(identity: Identity) -> None:
        begun.set()
        go_on.wait(10)
        node.saved.append(identity)

    monkeypatch.setattr(node.keeper, "_save", save)
    tasks = Tasks()
    tasks.spawn(node.keeper.run(), "keeper")
    await asyncio.to_thread(begun.wait, 10)
    ending = tasks.spawn(asyncio.sleep(0.05), "a while", awaited=True)
    ending.add_done_callback(lambda _: go_on.set())
    await tasks.cancel_all()
    assert node.saved, "the file is whole before anybody removes it"
    await node.managers.close()


async def test_an_hour_without_managers_keeps_no_new_root_waiting(
    swarm: PortedSwarm, port: ClusterPort, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, pauses = Node(swarm), list[float]()
    await port.close()

    async def away() -> None:
        raise Unavailable("no manager can be reached")

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 300:
            raise asyncio.CancelledError

    monkeypatch.setattr(node.keeper, "look", away)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await node.keeper.run()
    assert max(pauses) == 15.0
