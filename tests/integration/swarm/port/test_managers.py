"""A node that calls its managers."""

import asyncio
import contextlib

import pytest

from husk.errors import Forbidden, Unavailable
from husk.rpc.grpc.status import GrpcError
from husk.rpc.grpc.stream import ServerStream
from husk.swarm.ca import authority
from husk.swarm.port.managers import Managers
from husk.swarm.port.messages import RENEW, ROOT, CertificateReply, RenewRequest, RootReply, RootRequest
from husk.swarm.port.peers import Peer
from husk.swarm.port.server import ClusterPort
from husk.text.endpoints import HostPort
from tests.support.cluster_port import PortedSwarm
from tests.support.free_ports import free_port


async def echo(peer: Peer, stream: ServerStream) -> None:
    while (message := await stream.recv()) is not None:
        await stream.send(peer.node.encode() + b": " + message)


async def test_calls_go_to_who_is_there_and_find_the_next(swarm: PortedSwarm, port: ClusterPort) -> None:
    swarm.roles["w"] = "worker"
    away = HostPort("127.0.0.1", free_port())
    managers = Managers([away, swarm.endpoint], swarm.identity("w", "worker"))
    key, request = authority.new_request()
    reply = await managers.unary(RENEW, RenewRequest(request=request), CertificateReply)
    assert authority.fits(reply.certificate, key)
    assert len(port.connections) == 1
    await port.close()
    again = PortedSwarm(swarm.now)
    again.swarm, again.roles = swarm.swarm, swarm.roles
    async with again.opened():
        managers.know([away, again.endpoint])
        with contextlib.suppress(Unavailable):  # a call that finds the loss is not made again
            await managers.unary(ROOT, RootRequest(), RootReply)
        assert (await managers.unary(ROOT, RootRequest(), RootReply)).certificate == swarm.root()
    await managers.close()


async def test_nobody_there(swarm: PortedSwarm) -> None:
    managers = Managers([HostPort("127.0.0.1", free_port())], swarm.identity("w", "worker"))
    with pytest.raises(Unavailable, match=r"no manager of the swarm can be reached: 127.0.0.1:.*Connection refused"):
        await managers.unary(ROOT, RootRequest(), RootReply)
    with pytest.raises(Unavailable, match="none is known"):
        await Managers([], swarm.identity("w", "worker")).unary(ROOT, RootRequest(), RootReply)


async def test_calls_that_go_on_know_who_calls(swarm: PortedSwarm, port: ClusterPort) -> None:
    port.register("/test/Echo", echo, access="node")
    swarm.roles["w"] = "worker"
    managers = Managers([swarm.endpoint], swarm.identity("w", "worker"))
    async with await managers.stream("/test/Echo") as stream:
        for word in (b"a", b"b"):
            await stream.send(word)
            assert await stream.recv() == b"w: " + word
    await managers.close()


async def test_a_new_certificate_is_shown_from_then_on(swarm: PortedSwarm, port: ClusterPort) -> None:
    swarm.roles |= {"w": "worker", "v": "worker"}
    managers = Managers([swarm.endpoint], swarm.identity("w", "worker"))
    await managers.unary(ROOT, RootRequest(), RootReply)
    assert [peer.node for peer in port.connections] == ["w"]
    await managers.use(swarm.identity("v", "worker"))
    await managers.unary(ROOT, RootRequest(), RootReply)
    assert "v" in [peer.node for peer in port.connections]
    del swarm.roles["v"]
    with pytest.raises(Forbidden, match="node v does not belong to the swarm"):
        await managers.unary(RENEW, RenewRequest(), CertificateReply)
    await managers.close()


async def test_a_manager_that_says_nothing_is_left(swarm: PortedSwarm, port: ClusterPort) -> None:
    """A host that loses its power ends no connection."""

    async def silent(peer: Peer, stream: ServerStream) -> None:
        await asyncio.Event().wait()

    port.register("/test/Silent", silent, access="node")
    swarm.roles["w"] = "worker"
    other = PortedSwarm(swarm.now)
    other.swarm, other.roles = swarm.swarm, swarm.roles
    async with other.opened() as second:
        managers = Managers([swarm.endpoint, other.endpoint], swarm.identity("w", "worker"))
        stream = await managers.stream("/test/Silent")
        with pytest.raises(Unavailable, match="not answered within"):
            await managers.unary("/test/Silent", RootRequest(), RootReply, timeout=0.05)
        with pytest.raises(GrpcError):
            await stream.recv()
        assert (await managers.unary(ROOT, RootRequest(), RootReply)).certificate == swarm.root()
        assert len(second.connections) == 1, "the other one was asked"
        managers.know([])
        assert len(managers.known) == 2, "whoever knows of none is not believed"
        await managers.close()
