"""The cluster port of a real swarm, on the loopback."""

import asyncio
import contextlib
import errno
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TypeVar, cast

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
from husk.swarm.membership.certificates import NodeCertificates
from husk.swarm.model.settings import SwarmSpec
from husk.swarm.port.certificates import CertificateHandlers
from husk.swarm.port.join import join
from husk.swarm.port.keeper import CertificateKeeper
from husk.swarm.port.managers import Managers
from husk.swarm.port.messages import FOLLOW, RENEW, FollowReply, FollowRequest, JoinRequest
from husk.swarm.port.server import ClusterPort
from husk.swarm.transport.listener import listen
from husk.text.endpoints import HostPort
from tests.support.free_ports import free_port
from tests.support.waiting import until_async
from tests.unit.swarm.membership.test_certificates import rotate, trust_of
from tests.unit.swarm.swarm_room import SwarmRoom

A = TypeVar("A", bound=Message)


class WatchedCertificates:
    """A node's certificates, of which a test does one step instead; all else is theirs."""

    def __init__(self, certificates: NodeCertificates) -> None:
        self._certificates = certificates
        self.identity = certificates.identity
        self.settle = certificates.settle
        self.renew = certificates.renew
        self.wait = certificates.wait
        self.noted = certificates.noted

    @property
    def replacing(self) -> bool:
        return self._certificates.replacing


class PortedRoom(SwarmRoom):
    """One whose cluster port is open."""

    def __init__(self, directory: Path, state: StateStore) -> None:
        super().__init__(directory, state)
        self.admitted: list[str] = []
        self.tasks = Tasks()
        self.endpoint = HostPort("127.0.0.1", free_port())
        self.shown = 0
        self.watched = WatchedCertificates(self.certificates)
        self.port = ClusterListener(
            self.cluster, cast(NodeCertificates, self.watched), self._served, again=0.05, look=0.01, pause=0.05
        )

    def _served(self) -> ClusterPort:
        self.shown += 1
        several = self.node_role.manager_role.several
        ca_server = CAServer(self.store, self.cluster, self.certificates, self.admitted.append, several)
        port = ClusterPort(ca_server, home=ca_server.is_home)
        CertificateHandlers(ca_server, patience=0.2).register(port)
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
    assert not room.shown, "nothing is made before somebody knocks"
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
    await managers.close()
    again = None
    async with asyncio.timeout(10):
        while again is None:
            with contextlib.suppress(Unavailable):  # until the port shows its last certificate
                again = await join([room.endpoint], room.asking())
            await asyncio.sleep(0.01)
    assert again.identity.roots.decode() == trust_of(room).root.certificate


async def test_managers_are_not_let_in_without_etcd(room: PortedRoom) -> None:
    asking = room.asking()
    asking.token = room.cluster.swarm.manager_token
    room.etcd.installed = False
    with pytest.raises(Unavailable, match="several managers need etcd, and the program is missing"):
        await join([room.endpoint], asking)
    assert len(room.store.nodes) == 1


async def test_a_port_that_is_taken_and_becomes_free(tmp_path: Path, state: StateStore) -> None:
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
    assert not room.cluster.port_trouble, "there is no swarm"


async def test_a_certificate_is_renewed_while_the_port_is_in_use(room: PortedRoom) -> None:
    before = (await room.certificates.identity()).certificate
    waits = iter([0.0])

    async def wait(identity: object) -> float:
        return next(waits, 3600.0)

    room.watched.wait = wait
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


async def test_an_old_root_is_not_believed_any_more(room: PortedRoom) -> None:
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
    with pytest.raises(HuskError):  # the old one has to go
        while True:
            await former.unary(FOLLOW, FollowRequest(), FollowReply)
    late = Managers(joined.managers, joined.identity._replace(roots=keeper.identity.roots))
    with pytest.raises(Unavailable, match=r"TLS|closed|reset"):
        await late.unary(FOLLOW, FollowRequest(), FollowReply)
    for each in (managers, former, late):
        await each.close()


async def test_a_port_that_could_not_be_opened_is_opened_for_the_next(room: PortedRoom) -> None:
    identity, failing = room.certificates.identity, [True]

    async def fail() -> Identity:
        if failing:
            raise OSError(errno.ENOSPC, "No space left on device")
        return await identity()

    room.watched.identity = fail
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
    room.watched.wait = wait
    room.watched.renew = fail
    await join([room.endpoint], room.asking())
    await until_async(lambda: renewed == 2, "it is renewed")
    while (await join([room.endpoint], room.asking())).identity.roots != before.roots:
        await asyncio.sleep(0.01)
    assert "cannot be renewed now" in caplog.text


async def test_nothing_is_left_of_a_port_that_is_closed_while_it_opens(room: PortedRoom) -> None:
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

    room.watched.identity = slow
    room.watched.settle = settle
    room.port.open()
    _, writer = await asyncio.open_connection(*room.endpoint)
    await asked.wait()
    await room.port.close()
    assert not room.shown and go_on.is_set()
    writer.close()


async def test_what_cannot_be_done_is_said_once(room: PortedRoom, caplog: pytest.LogCaptureFixture) -> None:
    tries = 0

    async def fail() -> bool:
        nonlocal tries
        tries += 1
        raise OSError(errno.ENOSPC, "No space left on device")

    room.watched.settle = fail
    room.port.open()
    await until_async(lambda: tries > 2, "it is tried again")
    assert caplog.text.count("this manager has no certificate") == 1


async def test_a_replacement_goes_on_after_a_fault_where_nobody_knocks(room: PortedRoom) -> None:
    settle, failures = room.certificates.settle, [1, 2]

    async def fail_first() -> bool:
        if failures:
            failures.pop()
            raise Unavailable("the store is away")
        return await settle()

    room.watched.settle = fail_first
    await rotate(room)
    room.port.open()
    await until_async(lambda: trust_of(room).next is None, "the only node has a new certificate")
