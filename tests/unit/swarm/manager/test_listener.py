"""The cluster port of a real swarm, on the loopback."""

import asyncio
import contextlib
import errno
import shutil
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from husk.aio.tasks import Tasks
from husk.errors import HuskError, SystemFault, Unavailable
from husk.rpc.protobuf import Message
from husk.storage.state.store import StateStore
from husk.swarm.ca import authority, renewal
from husk.swarm.ca.identity import Identity
from husk.swarm.manager import listener as listener
from husk.swarm.manager.ca_server import CAServer
from husk.swarm.manager.listener import ClusterListener
from husk.swarm.model.settings import SwarmSpec
from husk.swarm.port import certificates
from husk.swarm.port.certificates import CertificateHandlers
from husk.swarm.port.join import join
from husk.swarm.port.keeper import CertificateKeeper
from husk.swarm.port.managers import Managers
from husk.swarm.port.messages import FOLLOW, RENEW, FollowReply, FollowRequest, JoinRequest
from husk.swarm.port.server import ClusterPort
from husk.swarm.transport import listener as door
from husk.swarm.transport.listener import listen
from husk.text.endpoints import HostPort
from tests.support.free_ports import free_port
from tests.support.waiting import until_async
from tests.unit.swarm.membership.test_certificates import rotate, trust_of
from tests.unit.swarm.swarm_room import SwarmRoom

A = TypeVar("A", bound=Message)


class PortedRoom(SwarmRoom):
    """One whose cluster port is open."""

    def __init__(self, directory: Path, state: StateStore) -> None:
        super().__init__(directory, state)
        self.admitted: list[str] = []
        self.tasks = Tasks()
        self.endpoint = HostPort("127.0.0.1", free_port())
        self.port = ClusterListener(self.cluster, self.certificates, self._served)

    def _served(self) -> ClusterPort:
        several = self.node_role.manager_role.several
        ca_server = CAServer(self.store, self.cluster, self.certificates, self.admitted.append, several)
        port = ClusterPort(ca_server, home=ca_server.is_home)
        CertificateHandlers(ca_server).register(port)
        return port

    async def init(self) -> None:
        await self.cluster.init(
            SwarmSpec(),
            advertise="127.0.0.1",
            advertise_port=self.endpoint.port,
            listen=str(self.endpoint),
            availability="",
            pools=[],
            subnet_size=0,
            data_path_port=0,
        )
        self.port.open()

    def asking(self) -> JoinRequest:
        return JoinRequest(token=self.cluster.swarm.worker_token, hostname="beta")


@pytest.fixture
async def room(tmp_path: Path, state: StateStore) -> AsyncIterator[PortedRoom]:
    made = PortedRoom(tmp_path, state)
    await made.init()
    yield made
    await made.tasks.cancel_all()
    await made.port.close()
    await made.port.close()


async def test_a_node_joins_lives_and_is_removed(room: PortedRoom) -> None:
    assert room.port._port is None, "nothing is loaded before somebody knocks"
    joined = await join([room.endpoint], room.asking())
    assert joined.holder.role == "worker" and joined.managers == (room.endpoint,)
    assert list(room.store.nodes) == [room.cluster.node_id, joined.holder.node]
    managers = Managers(joined.managers, joined.identity)
    ask = FollowRequest()
    assert not (await managers.unary(FOLLOW, ask, FollowReply)).renew
    await rotate(room)
    room.port.open()
    told = await managers.unary(FOLLOW, ask, FollowReply)
    await until_async(lambda: room.cluster.node.issuer == trust_of(room).signing.key_id, "the manager has a new one")
    told = await managers.unary(FOLLOW, ask, FollowReply)
    assert told.renew and told.roots.count(b"BEGIN") == 2 and trust_of(room).next is not None
    await room.nodes.remove(joined.holder.node, force=True)
    room.port.dropped(joined.holder.node)
    with pytest.raises(HuskError):
        while True:
            await managers.unary(FOLLOW, ask, FollowReply)
    # If the replacement of the root waited for this node alone, its certificate is none any more.
    with pytest.raises(HuskError, match=r"does not belong|may not take the certificate"):
        await managers.unary(FOLLOW, ask, FollowReply)
    await until_async(lambda: trust_of(room).next is None, "nobody is waited for any more")
    await until_async(lambda: room.port._tasks.count == 2, "all but what goes on is done")
    await managers.close()
    again = await join([room.endpoint], room.asking())
    assert again.identity.roots.decode() == trust_of(room).root.certificate


async def test_managers_are_not_let_in_without_etcd(room: PortedRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    asking = room.asking()
    asking.token = room.cluster.swarm.manager_token
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(Unavailable, match="several managers need etcd, and the program is missing"):
        await join([room.endpoint], asking)
    assert len(room.store.nodes) == 1


async def test_a_port_that_is_taken_and_becomes_free(
    tmp_path: Path, state: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "_AGAIN", 0.05)
    room = PortedRoom(tmp_path, state)
    taken = listen(*room.endpoint)
    with pytest.raises(
        SystemFault, match=r"failed to listen on remote API address: listen tcp .* address already in use"
    ):
        await room.port.probe(room.endpoint)
    await room.init()
    assert "address already in use" in room.cluster.port_trouble
    taken.close()
    await until_async(lambda: not room.cluster.port_trouble, "it is open")
    assert (await join([room.endpoint], room.asking())).holder.role == "worker"
    await room.port.close()
    await room.port.probe(room.endpoint)


async def test_the_usual_port_may_be_another_daemons(tmp_path: Path, state: StateStore) -> None:
    room = PortedRoom(tmp_path, state)
    await room.port.probe(listener.USUAL)
    assert room.port.endpoint == listener.USUAL
    room.port.open()
    assert room.port._door is None, "there is no swarm"


async def test_a_certificate_is_renewed_while_the_port_is_in_use(
    room: PortedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (await room.certificates.identity()).certificate
    waits = iter([0.0])

    async def wait(identity: object) -> float:
        return next(waits, 3600.0)

    monkeypatch.setattr(room.certificates, "wait", wait)
    await join([room.endpoint], room.asking())
    changed = False
    for _ in range(200):
        changed = (await room.certificates.identity()).certificate != before
        if changed:
            break
        await asyncio.sleep(0.01)
    assert changed and authority.signed_by(before, [trust_of(room).root.certificate.encode()])


class Lost(Managers):
    """A way to managers on which an answer is lost."""

    lost: Sequence[str] = ()

    async def unary(self, method: str, request: Message, answer: type[A], timeout: float = 30.0) -> A:
        told = await super().unary(method, request, answer, timeout)
        if method in self.lost:
            self.lost = ()
            raise Unavailable("lost")
        return told


async def test_an_old_root_is_not_believed_any_more(room: PortedRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "PATIENCE", 0.2)
    joined = await join([room.endpoint], room.asking())
    managers = Lost(joined.managers, joined.identity)
    keeper = CertificateKeeper(managers, lambda identity: None, joined.identity)
    await rotate(room)
    room.port.open()
    await until_async(lambda: room.cluster.node.issuer == trust_of(room).signing.key_id, "the manager has a new one")
    managers.lost = [RENEW]
    while managers.lost:
        with contextlib.suppress(Unavailable):  # a connection may end, too
            await keeper.look()
    assert keeper.identity.certificate == joined.identity.certificate
    await asyncio.sleep(0.05)
    assert trust_of(room).next is not None, "it has not got its new one"
    former = Managers(joined.managers, joined.identity)
    while trust_of(room).next is not None:
        await former.unary(FOLLOW, FollowRequest(), FollowReply)
        await keeper.look()
    while keeper.identity.roots.decode() != trust_of(room).root.certificate:
        await keeper.look()
    await until_async(lambda: former._connection is not None and former._connection.closed, "the old one has to go")
    late = Managers(joined.managers, joined.identity._replace(roots=keeper.identity.roots))
    with pytest.raises(Unavailable, match=r"TLS|closed|reset"):
        await late.unary(FOLLOW, FollowRequest(), FollowReply)
    for each in (managers, former, late):
        await each.close()


async def test_a_port_that_could_not_be_opened_is_opened_for_the_next(
    room: PortedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "PAUSE", 0.05)
    identity, failing = room.certificates.identity, [True]

    async def fail() -> Identity:
        if failing:
            raise OSError(errno.ENOSPC, "No space left on device")
        return await identity()

    monkeypatch.setattr(room.certificates, "identity", fail)
    joining = room.tasks.spawn(join([room.endpoint], room.asking()), "join", awaited=True)
    await until_async(lambda: "No space left" in room.cluster.port_trouble, "it says so")
    failing.clear()
    assert (await joining).holder.role == "worker"
    assert room.cluster.port_trouble == ""


async def test_renewal_goes_on_after_a_full_disk(
    room: PortedRoom, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(renewal, "AGAIN_SOONEST", 0.01)
    renew, waits, renewed = room.certificates.renew, iter([0.0, 0.0]), 0

    async def wait(identity: object) -> float:
        return next(waits, 3600.0)

    async def fail() -> Identity:
        nonlocal renewed
        renewed += 1
        if renewed == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return await renew()

    before = await room.certificates.identity()
    monkeypatch.setattr(room.certificates, "wait", wait)
    monkeypatch.setattr(room.certificates, "renew", fail)
    await join([room.endpoint], room.asking())
    await until_async(lambda: room.port._used not in (None, before), "the port shows the next one")
    assert "cannot be renewed now" in caplog.text


async def test_nothing_is_left_of_a_port_that_is_closed_while_it_opens(
    room: PortedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity, asked, go_on = room.certificates.identity, asyncio.Event(), asyncio.Event()

    async def slow() -> Identity:
        asked.set()
        await go_on.wait()
        return await identity()

    async def settle() -> bool:
        """Wait for all that has to be waited for at the end."""
        try:
            await asyncio.Event().wait()
        finally:
            go_on.set()
            await asyncio.sleep(0.05)
        return False

    monkeypatch.setattr(room.certificates, "identity", slow)
    monkeypatch.setattr(room.certificates, "settle", settle)
    room.port.open()
    _, writer = await asyncio.open_connection(*room.endpoint)
    await asked.wait()
    await room.port.close()
    assert room.port._tasks.count == 0 and room.port._port is None
    writer.close()


async def test_what_cannot_be_done_is_said_once(
    room: PortedRoom, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> bool:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(room.certificates, "settle", fail)
    for _ in range(3):
        await room.port._settle()
    assert caplog.text.count("this manager has no certificate") == 1


async def test_a_replacement_goes_on_after_a_fault_where_nobody_knocks(
    room: PortedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "_LOOK", 0.01)
    settle, failures = room.certificates.settle, [1, 2]

    async def fail_first() -> bool:
        if failures:
            failures.pop()
            raise Unavailable("the store is away")
        return await settle()

    monkeypatch.setattr(room.certificates, "settle", fail_first)
    await rotate(room)
    room.port.open()
    await until_async(lambda: trust_of(room).next is None, "the only node has a new certificate")
    await until_async(lambda: room.port._looking is None, "and nobody looks any more")
