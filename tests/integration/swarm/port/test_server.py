"""The port is open to everybody: what do those hear who should not be heard, and what do they cost?"""

import asyncio
import itertools
import os
import ssl
import time
from collections.abc import Callable
from typing import Any

import pytest

from husk.errors import Forbidden, HuskError, NotImplementedYet, Unauthorized, Unavailable
from husk.rpc.grpc.status import GrpcError
from husk.rpc.grpc.stream import ServerStream, framed
from husk.swarm.ca import authority
from husk.swarm.ca.authority import Signer
from husk.swarm.ca.holders import MANAGER_NAME, Holder
from husk.swarm.ca.identity import Identity, joining_context
from husk.swarm.port import crowding, server
from husk.swarm.port.managers import Managers
from husk.swarm.port.messages import RENEW, ROOT, CertificateReply, RootReply, RootRequest
from husk.swarm.port.peers import Peer
from husk.swarm.port.server import ClusterPort
from husk.swarm.transport.listener import listen
from tests.support.cluster_port import PortedSwarm
from tests.support.waiting import until_async


async def whoami(peer: Peer, request: RootRequest) -> RootReply:
    return RootReply(certificate=peer.node.encode())


async def asks(swarm: PortedSwarm, who: Identity | ssl.SSLContext, method: str = "/test/Managers") -> bytes:
    managers = Managers([swarm.endpoint], who)
    try:
        return (await managers.unary(method, RootRequest(), RootReply)).certificate
    finally:
        await managers.close()


@pytest.fixture(autouse=True)
def methods(port: ClusterPort) -> None:
    port.register_unary("/test/Nodes", RootRequest, whoami, access="node")
    port.register_unary("/test/Managers", RootRequest, whoami, access="manager")


async def test_a_handler_hears_who_calls(swarm: PortedSwarm) -> None:
    swarm.roles |= {"m": "manager", "w": "worker"}
    assert await asks(swarm, swarm.identity("m", "manager")) == b"m"
    assert await asks(swarm, swarm.identity("w", "worker"), "/test/Nodes") == b"w"
    assert await asks(swarm, joining_context(None), ROOT) == swarm.root()
    with pytest.raises(NotImplementedYet, match=r"there is no /test/Nothing here: Husk .* does not know it"):
        await asks(swarm, swarm.identity("m", "manager"), "/test/Nothing")


async def test_a_call_that_is_not_known_ends_nothing_else(swarm: PortedSwarm, port: ClusterPort) -> None:
    """A newer node asks for what this manager does not have; what it does on the same connection goes on."""

    async def echo(peer: Peer, stream: ServerStream) -> None:
        while (message := await stream.recv()) is not None:
            await stream.send(message)

    port.register("/test/Echo", echo, access="node")
    swarm.roles["w"] = "worker"
    managers = Managers([swarm.endpoint], swarm.identity("w", "worker"))
    talking = await managers.stream("/test/Echo")
    try:
        for word in (b"before", b"after"):
            await talking.send(word)
            assert await talking.recv() == word
            with pytest.raises(NotImplementedYet, match="does not know it"):
                await managers.unary("/husk.cluster.v2.Dispatcher/Newer", RootRequest(), RootReply)
            unknown = await managers.stream("/husk.cluster.v2.Dispatcher/NewerStream")
            with pytest.raises(GrpcError, match="does not know it"):
                await unknown.recv()
        assert len(port.connections) == 1, "it is still the first"
    finally:
        talking.cancel()
        await managers.close()


def of_another_swarm(swarm: PortedSwarm) -> Identity:
    return PortedSwarm().identity("w", "manager")._replace(roots=swarm.root())


def expired(swarm: PortedSwarm) -> Identity:
    key, request = authority.new_request()
    holder = Holder("w", "manager", swarm.swarm)
    chain = authority.issue(request, holder, Signer(swarm.now), 60, time.time() - 120)
    return Identity(swarm.root(), chain, key)


def of_itself(swarm: PortedSwarm) -> Identity:
    """A node signs for itself, as if it were a CA."""
    mine = swarm.identity("w", "worker")
    key, request = authority.new_request()
    first = mine.certificate
    signer = Signer(authority.Root(first, mine.key), (first,))
    return Identity(
        swarm.root(), authority.issue(request, Holder("w", "manager", swarm.swarm), signer, 60, time.time()), key
    )


@pytest.mark.parametrize("who", [of_another_swarm, expired, of_itself])
async def test_certificates_that_are_not_believed(
    swarm: PortedSwarm, port: ClusterPort, who: Callable[[PortedSwarm], Identity]
) -> None:
    swarm.roles["w"] = "manager"
    with pytest.raises(Unavailable, match=r"TLS|closed"):
        await asks(swarm, who(swarm))
    await until_async(lambda: not port._crowd.strangers, "the connection is given back")


async def test_certificates_that_are_not_enough(swarm: PortedSwarm, caplog: pytest.LogCaptureFixture) -> None:
    swarm.roles |= {"w": "worker", "demoted": "worker", "m": "manager"}
    for who, method, error in (
        (joining_context(None), "/test/Nodes", Unauthorized),
        (joining_context(None), RENEW, Unauthorized),
        (swarm.identity("w", "worker"), "/test/Managers", Forbidden),
        (swarm.identity("demoted", "manager"), "/test/Managers", Forbidden),
        (swarm.identity("removed", "manager"), "/test/Nodes", Forbidden),
        # Of a swarm that has the same root, which its owner brought.
        (swarm.identity("m", "manager", swarm="other"), "/test/Nodes", Forbidden),
    ):
        with pytest.raises(error):
            await asks(swarm, who, method)
    assert "may not ask for" in caplog.text


async def test_a_certificate_that_ends_while_its_node_is_connected(swarm: PortedSwarm) -> None:
    now = time.time()
    port = ClusterPort(swarm, clock=lambda: now)
    port.register_unary("/test/Nodes", RootRequest, whoami, access="node")
    listener = listen("127.0.0.1", 0)
    swarm.endpoint = swarm.endpoint._replace(port=listener.getsockname()[1])
    swarm.roles["w"] = "worker"
    port.open(listener, swarm.identity("first", "manager"))
    managers = Managers([swarm.endpoint], swarm.identity("w", "worker", 600))
    assert (await managers.unary("/test/Nodes", RootRequest(), RootReply)).certificate == b"w"
    now += 700
    with pytest.raises(Unauthorized, match="has expired"):
        await managers.unary("/test/Nodes", RootRequest(), RootReply)
    await managers.close()
    await port.close()


async def hang(peer: Peer, stream: ServerStream) -> None:
    await stream.recv()


async def test_no_call_outlives_a_certificate_or_a_membership(
    swarm: PortedSwarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "LOOK", 0.02)
    now = time.time()
    port = ClusterPort(swarm, clock=lambda: now)
    port.register("/test/Session", hang, access="node")
    listener = listen("127.0.0.1", 0)
    swarm.endpoint = swarm.endpoint._replace(port=listener.getsockname()[1])
    port.open(listener, swarm.identity("first", "manager"))
    swarm.roles |= {"short": "worker", "removed": "worker", "demoted": "manager", "stays": "worker"}
    managers = {
        node: Managers([swarm.endpoint], swarm.identity(node, "manager" if node == "demoted" else "worker", life))
        for node, life in (("short", 600), ("removed", 6000), ("demoted", 6000), ("stays", 6000))
    }
    streams = {node: await each.stream("/test/Session") for node, each in managers.items()}
    await until_async(lambda: len(port.connections) == 4, "all are connected")
    now += 700
    del swarm.roles["removed"]
    swarm.roles["demoted"] = "worker"
    for node in ("short", "removed", "demoted"):
        with pytest.raises(GrpcError):
            await streams[node].recv()
    assert [peer.node for peer in port.connections] == ["stays"] and not streams["stays"].over
    for each in managers.values():
        await each.close()
    await port.close()


async def test_a_swarm_that_cannot_be_read_is_told_in_its_words(
    swarm: PortedSwarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(node: str) -> None:
        raise Unavailable("the store is away")

    monkeypatch.setattr(swarm, "role", away)
    with pytest.raises(Unavailable, match="the store is away"):
        await asks(swarm, swarm.identity("w", "worker"), "/test/Nodes")


async def test_a_root_that_is_gone_takes_its_nodes_along(swarm: PortedSwarm, port: ClusterPort) -> None:
    port.register("/test/Session", hang, access="node")
    swarm.roles |= {"old": "worker", "new": "worker"}
    old = Managers([swarm.endpoint], swarm.identity("old", "worker"))
    former = await old.stream("/test/Session")
    await until_async(lambda: len(port.connections) == 1, "it is connected")
    first, swarm.now = swarm.now, authority.new_root(time.time())
    both = swarm.identity("first", "manager")._replace(roots=first.certificate + swarm.root())
    port.use(both)
    young = Managers([swarm.endpoint], swarm.identity("new", "worker"))
    stream = await young.stream("/test/Session")
    await until_async(lambda: len(port.connections) == 2, "both are believed")
    port.use(both._replace(roots=swarm.root()))
    with pytest.raises(GrpcError):
        await former.recv()
    assert [peer.node for peer in port.connections] == ["new"] and not stream.over
    for each in (old, young):
        await each.close()


async def test_a_node_that_is_removed_is_cut_off(swarm: PortedSwarm, port: ClusterPort) -> None:
    port.register("/test/Session", hang, access="node")
    swarm.roles["w"] = "worker"
    managers = Managers([swarm.endpoint], swarm.identity("w", "worker"))
    stream = await managers.stream("/test/Session")
    await until_async(lambda: port.connections, "it is connected")
    port.drop("w")
    with pytest.raises(GrpcError):
        await stream.recv()
    assert not port.connections
    await managers.close()


async def test_garbage_and_silence(swarm: PortedSwarm, port: ClusterPort, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HANDSHAKE", "FIRST", "STRANGERS_STAY"):
        monkeypatch.setattr(server, name, 0.3)
    for words in (b"GET / HTTP/1.1\r\n\r\n", os.urandom(4096), b"\x16\x03\x01", b""):
        reader, writer = await asyncio.open_connection(*swarm.endpoint)
        writer.write(words)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await reader.readexactly(1 << 20)
        writer.close()
    tls = joining_context(None)
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    for words in (os.urandom(4096), b"", preface, preface + b"\0\0\0\4\0\0\0\0\0"):
        reader, writer = await asyncio.open_connection(*swarm.endpoint, ssl=tls, server_hostname=MANAGER_NAME)
        writer.write(words)
        await until_async(lambda: port._crowd.strangers == 0, "who says nothing more has to leave")
        writer.transport.abort()
    assert await asks(swarm, joining_context(None), ROOT) == swarm.root()


async def test_what_strangers_say_must_be_short(swarm: PortedSwarm) -> None:
    managers = Managers([swarm.endpoint], joining_context(None))
    with pytest.raises(HuskError) as told:
        await managers.unary(ROOT, CertificateReply(roots=bytes(server.LARGEST_STRANGE)), RootReply)
    assert "reset the call" in told.value.message or "is the most" in told.value.message
    await managers.close()


async def test_strangers_take_no_room_of_nodes(swarm: PortedSwarm, port: ClusterPort) -> None:
    swarm.roles["w"] = "worker"
    node = Managers([swarm.endpoint], swarm.identity("w", "worker"))
    await node.unary("/test/Nodes", RootRequest(), RootReply)
    waiting = [await asyncio.open_connection(*swarm.endpoint) for _ in range(crowding.MOST_OF_ADDRESS + 5)]
    await until_async(lambda: port._crowd.strangers == crowding.MOST_OF_ADDRESS, "no more are let in")
    await node.unary("/test/Nodes", RootRequest(), RootReply)
    for _, writer in waiting:
        writer.transport.abort()
    await until_async(lambda: port._crowd.strangers == 0, "they are gone")
    await node.close()


async def test_one_node_has_its_share(swarm: PortedSwarm, port: ClusterPort) -> None:
    swarm.roles["w"] = "worker"
    who = swarm.identity("w", "worker")
    many = [Managers([swarm.endpoint], who) for _ in range(crowding.MOST_OF_NODE)]
    for each in many:
        await each.unary("/test/Nodes", RootRequest(), RootReply)
    with pytest.raises(Unavailable):
        await asks(swarm, who, "/test/Nodes")
    for each in many:
        await each.close()
    await until_async(lambda: port._crowd.nodes == 0, "they are gone")
    assert await asks(swarm, who, "/test/Nodes") == b"w"


async def test_a_call_of_one_message_has_an_end(swarm: PortedSwarm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "UNARY", 0.1)
    async with swarm.opened() as port:

        async def slow(peer: Peer, request: RootRequest) -> RootReply:
            await asyncio.Event().wait()
            raise AssertionError

        port.register_unary("/test/Slow", RootRequest, slow, access="anybody")
        with pytest.raises(Unavailable, match="the time for the call is over"):
            await asks(swarm, joining_context(None), "/test/Slow")


async def test_one_message_is_one(swarm: PortedSwarm) -> None:
    managers = Managers([swarm.endpoint], joining_context(None))
    for count in (0, 2):
        async with await managers.stream(ROOT) as stream:
            for _ in range(count):
                await stream.send(b"")
            await stream.end()
            with pytest.raises(GrpcError, match="takes one message"):
                await stream.recv()
    await managers.close()


async def test_a_port_that_is_taken(swarm: PortedSwarm) -> None:
    with pytest.raises(OSError, match="in use"):
        listen(*swarm.endpoint)


async def test_nodes_come_back_however_many_strangers_wait(
    swarm: PortedSwarm, port: ClusterPort, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each stranger seems to come from an address of its own, as they do over IPv6."""
    swarm.roles["w"] = "worker"
    numbers = itertools.count()
    monkeypatch.setattr(crowding, "place_of", lambda address: f"stranger {next(numbers)}")
    waiting = [await asyncio.open_connection(*swarm.endpoint) for _ in range(crowding.MOST_STRANGERS + 5)]
    await until_async(lambda: next(numbers) >= len(waiting), "all have come")
    assert port._crowd.strangers == len(port._visits) == crowding.MOST_STRANGERS
    for reader, _ in waiting[:5]:
        async with asyncio.timeout(5):
            assert await reader.read(1) == b"", "the first had to go"
    assert await asks(swarm, swarm.identity("w", "worker"), "/test/Nodes") == b"w"
    for _, writer in waiting:
        writer.transport.abort()
    await until_async(lambda: port._crowd.strangers == 0 and not port._visits, "they are gone")


async def test_nodes_that_come_back_all_at_once_are_all_heard(
    swarm: PortedSwarm, port: ClusterPort, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A manager that starts has heard no address yet: it goes by the records. They are more than strangers may be."""
    monkeypatch.setattr("husk.swarm.port.managers.CONNECT", 120.0)
    monkeypatch.setattr(server, "WAITING", 120.0)
    port._home = lambda address: True
    names = [f"w{number}" for number in range(2 * crowding.MOST_STRANGERS)]
    swarm.roles |= dict.fromkeys(names, "worker")
    identities = [swarm.identity(name, "worker") for name in names]
    places, connect = iter(range(len(names))), asyncio.open_connection

    async def from_another_place(host: str, at: int, **options: Any) -> Any:
        number = next(places)
        return await connect(host, at, local_addr=(f"127.0.{1 + number // 250}.{1 + number % 250}", 0), **options)

    monkeypatch.setattr(asyncio, "open_connection", from_another_place)
    told = await asyncio.gather(*(asks(swarm, identity, "/test/Nodes") for identity in identities))
    assert told == [name.encode() for name in names] and "has to go" not in caplog.text


async def test_a_node_cannot_fill_the_managers_memory(swarm: PortedSwarm, port: ClusterPort) -> None:
    """With many messages that have no end."""
    swarm.roles["w"] = "worker"
    managers = Managers([swarm.endpoint], swarm.identity("w", "worker"))
    streams = [await managers.stream("/test/Nodes") for _ in range(20)]
    unfinished = framed(bytes(1 << 20))[:-1]
    with pytest.raises(GrpcError):
        for stream in streams:
            await stream.send_raw(unfinished)
        for stream in streams:
            await stream.recv()
    (connection,) = port._open
    assert 0 < sum(connection._held.values()) <= server.MOST
    for stream in streams:
        stream.cancel()
    await until_async(lambda: not connection._held, "nothing of it is left")
    assert (await managers.unary("/test/Nodes", RootRequest(), RootReply)).certificate == b"w"
    await managers.close()
