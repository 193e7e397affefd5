"""Logs over a real port: a slow reader holds the sender, one that leaves ends it, and only managers may read."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import pytest

from husk.errors import Forbidden, NotFound, Unavailable
from husk.rpc.grpc.status import GrpcError
from husk.rpc.grpc.stream import ClientStream
from husk.swarm.port import logs
from husk.swarm.port.logs import LogCalls, LogHandlers
from husk.swarm.port.managers import Managers
from tests.support.cluster_port import PortedSwarm
from tests.support.waiting import soon, until_async


class FakeDesk:
    def __init__(self) -> None:
        self.listening: list[str] = []
        self.taken: list[bytes] = []
        self.more = asyncio.Event()
        self.reading = 0

    async def wanted(self, node: str) -> AsyncGenerator[bytes]:
        self.listening.append(node)
        try:
            yield b"for " + node.encode()
            await asyncio.Event().wait()
        finally:
            self.listening.remove(node)

    async def take(self, node: str, name: bytes, pieces: AsyncIterator[bytes]) -> None:
        if name == b"unknown":
            raise NotFound("nobody reads this log")
        async for piece in pieces:
            self.taken.append(piece[:1])
            if piece == b"enough":
                return
            if name == b"slow":
                await self.more.wait()

    async def read(self, body: bytes) -> AsyncGenerator[bytes]:
        self.reading += 1
        try:
            yield body
            if body == b"follow":
                await asyncio.Event().wait()
        finally:
            self.reading -= 1


class Ported:
    def __init__(self, swarm: PortedSwarm) -> None:
        self.swarm, self.servicer = swarm, FakeDesk()
        swarm.roles["w"] = "worker"
        self.managers = Managers([swarm.endpoint], swarm.identity("w", "worker"))
        self.calls = LogCalls(self.managers)


@pytest.fixture
async def ported() -> AsyncIterator[Ported]:
    swarm = PortedSwarm()
    async with swarm.opened() as port:
        made = Ported(swarm)
        LogHandlers(made.servicer).register(port)
        yield made
        await made.managers.close()


class Source:
    def __init__(self, *pieces: bytes) -> None:
        self.pieces, self.given = pieces, 0

    async def read(self) -> AsyncGenerator[bytes]:
        for piece in self.pieces:
            self.given += 1
            yield piece


async def test_a_node_hears_what_is_wanted_and_brings_it(ported: Ported) -> None:
    async with aclosing(ported.calls.wanted()) as wanted:
        assert await anext(wanted) == b"for w" and ported.servicer.listening == ["w"]
    await until_async(lambda: not ported.servicer.listening, "it listens no more")
    await ported.calls.send(b"name", Source(b"1", b"2").read())
    assert ported.servicer.taken == [b"1", b"2"]
    source = Source(b"1", b"2", b"3")
    await ported.calls.send(b"unknown", source.read())
    assert ported.servicer.taken == [b"1", b"2"]


async def test_a_slow_reader_holds_the_sender_and_one_that_leaves_ends_it(ported: Ported) -> None:
    slow = Source(*[b"x" * 60_000] * 200)
    sending = soon(ported.calls.send(b"slow", slow.read()))
    await until_async(lambda: ported.servicer.taken == [b"x"], "the first came")
    before = -1
    while slow.given != before:
        before = slow.given
        await asyncio.sleep(0.1)
    assert slow.given < 30, "at most the windows of both sides"
    ported.servicer.more.set()
    async with asyncio.timeout(10):
        await sending
    assert slow.given == len(ported.servicer.taken) == 200
    endless = Source(b"1", b"enough", *[b"x" * 60_000] * 1000)
    async with asyncio.timeout(10):
        await ported.calls.send(b"name", endless.read())
    assert endless.given < 100


async def test_a_sender_that_is_cancelled_twice_ends_its_call(ported: Ported) -> None:
    held, open_ = asyncio.Event(), list[ClientStream]()
    stream_of = ported.managers.stream

    async def noted(method: str) -> ClientStream:
        open_.append(await stream_of(method))
        return open_[-1]

    async def stubborn() -> AsyncGenerator[bytes]:
        yield b"1"
        try:
            await asyncio.Event().wait()
        finally:
            await held.wait()

    ported.managers.stream = noted  # type: ignore[method-assign]
    sending = soon(ported.calls.send(b"name", stubborn()))
    await until_async(lambda: ported.servicer.taken == [b"1"], "the first came")
    for _ in range(2):
        sending.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await sending
    with pytest.raises(GrpcError):
        async with asyncio.timeout(10):
            await open_[0].recv()
    held.set()


async def test_only_managers_read(ported: Ported) -> None:
    swarm = ported.swarm
    with pytest.raises(Forbidden, match="for managers only"):
        await anext(logs.read(swarm.endpoint, swarm.identity("w", "worker"), b"follow"))
    # One that says so of itself is believed by nobody.
    with pytest.raises(Forbidden, match="for managers only"):
        await anext(logs.read(swarm.endpoint, swarm.identity("w", "manager"), b"follow"))
    swarm.roles["second"] = "manager"
    identity = swarm.identity("second", "manager")
    assert [piece async for piece in logs.read(swarm.endpoint, identity, b"all")] == [b"all"]
    async with aclosing(logs.read(swarm.endpoint, identity, b"follow")) as pieces:
        assert await anext(pieces) == b"follow" and ported.servicer.reading == 1
    await until_async(lambda: ported.servicer.reading == 0, "its reading ends")
    with pytest.raises(Unavailable):
        await anext(logs.read(swarm.endpoint._replace(port=1), identity, b"all"))
