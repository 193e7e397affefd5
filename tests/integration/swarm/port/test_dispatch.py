"""Calls about tasks over a real port: who calls is who its certificate says, and a node that goes is noticed."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

import pytest

from husk.errors import Conflict, Forbidden
from husk.rpc.grpc.status import GrpcError
from husk.swarm.port.dispatch import ASSIGNMENTS, DESCRIBING, DispatchCalls, DispatchHandlers
from husk.swarm.port.faults import TooMany
from husk.swarm.port.managers import Managers
from tests.support.cluster_port import PortedSwarm
from tests.support.waiting import until_async


class FakeDesk:
    def __init__(self) -> None:
        self.listening: list[str] = []
        self.left: list[str] = []

    async def assignments(self, node: str) -> AsyncGenerator[bytes]:
        self.listening.append(node)
        try:
            yield b"first for " + node.encode()
            yield b"x" * 3_000_000
            await asyncio.Event().wait()
        finally:
            self.listening.remove(node)

    async def report(self, node: str, body: bytes) -> bytes:
        if body == b"wrong":
            raise Forbidden("this node has no such task")
        return node.encode() + b" says " + body

    async def heartbeat(self, node: str) -> bytes:
        return b"alive: " + node.encode()

    async def describe(self, node: str, body: bytes) -> bytes:
        return node.encode() + b" is " + body

    async def leave(self, node: str) -> None:
        self.left.append(node)


class Ported:
    def __init__(self, swarm: PortedSwarm, servicer: FakeDesk) -> None:
        self.swarm, self.servicer = swarm, servicer
        self.now = 0.0
        self.handlers = DispatchHandlers(servicer, lambda: self.now)

    def calls(self, node: str) -> tuple[Managers, DispatchCalls]:
        self.swarm.roles.setdefault(node, "worker")
        managers = Managers([self.swarm.endpoint], self.swarm.identity(node, "worker"))
        return managers, DispatchCalls(managers)


@pytest.fixture
async def ported() -> AsyncIterator[Ported]:
    swarm, servicer = PortedSwarm(), FakeDesk()
    async with swarm.opened() as port:
        made = Ported(swarm, servicer)
        made.handlers.register(port)
        yield made


async def test_a_node_is_who_its_certificate_says(ported: Ported) -> None:
    managers, calls = ported.calls("w")
    assert await calls.report(b"hello") == b"w says hello"
    assert await calls.heartbeat() == b"alive: w"
    assert await calls.describe(b"large") == b"w is large"
    await calls.leave(5.0)
    assert ported.servicer.left == ["w"]
    with pytest.raises(Forbidden, match="no such task"):
        await calls.report(b"wrong")
    await managers.close()


async def test_a_node_that_goes_is_noticed(ported: Ported) -> None:
    managers, calls = ported.calls("w")
    news = calls.assignments()
    assert await anext(news) == b"first for w" and len(await anext(news)) == 3_000_000
    assert ported.servicer.listening == ["w"]
    await news.aclose()
    async with asyncio.timeout(10):
        while ported.servicer.listening:
            await asyncio.sleep(0)
    again = calls.assignments()
    assert await anext(again) == b"first for w"
    await managers.close()
    async with asyncio.timeout(10):
        while ported.servicer.listening:
            await asyncio.sleep(0)
    await again.aclose()


async def test_who_does_not_belong_to_the_swarm_hears_nothing(ported: Ported) -> None:
    managers, calls = ported.calls("w")
    del ported.swarm.roles["w"]
    for call in (calls.report(b"x"), calls.heartbeat(), anext(calls.assignments())):
        with pytest.raises(Forbidden):
            await call
    await managers.close()


async def test_a_node_listens_once(ported: Ported) -> None:
    managers, calls = ported.calls("w")
    first = calls.assignments()
    assert await anext(first) == b"first for w" and len(await anext(first))
    again = calls.assignments()
    assert await anext(again) == b"first for w" and len(await anext(again))
    with pytest.raises(Conflict, match="once more"):
        await anext(first)
    await until_async(lambda: ported.servicer.listening == ["w"], "the new one stays")
    await again.aclose()
    await until_async(lambda: not ported.servicer.listening and not ported.handlers._telling, "nobody listens")
    await managers.close()


async def test_a_node_that_listens_says_nothing(ported: Ported) -> None:
    managers, _ = ported.calls("w")
    stream = await managers.stream(ASSIGNMENTS)
    await stream.send_raw(b"\0")
    with pytest.raises(GrpcError, match="takes no message"):
        while True:
            await stream.recv()
    await until_async(lambda: not ported.servicer.listening, "it is told no more")
    await managers.close()


async def test_a_node_says_what_it_is_now_and_then(ported: Ported) -> None:
    managers, calls = ported.calls("w")
    assert await calls.describe(b"large") == b"w is large"
    with pytest.raises(TooMany, match="has just said"):
        await calls.describe(b"small")
    ported.now += DESCRIBING
    assert await calls.describe(b"small") == b"w is small"
    await managers.close()
