"""Bytes between a client and a worker, with a double of the worker."""

import asyncio
from typing import Any

import pytest

from husk.builder.store.sync.exchange import converse
from husk.errors import InvalidParameter, SystemFault, Unavailable
from husk.storage.workers.answers import Invalid, Received
from husk.storage.workers.handle import WorkerDied
from tests.support.waiting import soon


class Worker:
    def __init__(self, answer, says=(), dies_after=None):
        self.answer = answer
        self.says = [*says, b""]
        self.dies_after = dies_after
        self.heard = []
        self.ended = asyncio.Event()
        self.stopped = False

    async def write(self, data):
        if self.dies_after is not None and len(self.heard) >= self.dies_after:
            raise WorkerDied
        self.heard.append(data)

    async def read(self):
        return self.says.pop(0)

    async def outcome(self):
        await self.ended.wait()
        return self.answer

    def end_input(self):
        self.ended.set()

    def stop(self):
        self.stopped = True


class Client:
    def __init__(self, *says, failure=None):
        self.says = list(says)
        self.failure = failure
        self.heard = []

    async def receive(self):
        if self.says:
            return self.says.pop(0)
        if self.failure:
            raise self.failure
        return b""

    async def send(self, data):
        self.heard.append(data)

    async def end(self):
        self.heard.append(None)


async def run(worker, client, progress=None, patience=5.0):
    try:
        return await converse(worker, client, progress, patience=patience)
    finally:
        assert worker.stopped


async def test_bytes_go_both_ways():
    worker, client = Worker(Received(3, 4, 4), [b"x", b"y"]), Client(b"one", b"three")
    seen: list[int] = []
    assert await run(worker, client, seen.append) == Received(3, 4, 4)
    assert (worker.heard, client.heard, seen) == ([b"one", b"three"], [b"x", b"y", None], [3, 8])


async def test_the_workers_opinion_comes_first():
    client = Client(b"one", failure=Unavailable("the stream was reset"))
    with pytest.raises(InvalidParameter, match="out of order"):
        await run(Worker(Invalid("changes out of order"), dies_after=0), client)


async def test_a_stream_that_the_client_broke_is_told_in_the_clients_words():
    client = Client(b"one", failure=Unavailable("the client has gone"))
    with pytest.raises(Unavailable, match="gone"):
        await run(Worker(Invalid("unexpected EOF")), client)


async def test_a_worker_that_dies():
    with pytest.raises(SystemFault, match="died"):
        await run(Worker(None), Client())


async def test_a_client_that_goes_on_speaking_is_not_listened_to_for_ever():
    class Endless(Client):
        async def receive(self):
            await asyncio.sleep(0)
            return b"more"

    with pytest.raises(InvalidParameter, match="nonsense"):
        await run(Worker(Invalid("nonsense"), dies_after=1), Endless(), patience=0.01)


async def test_a_worker_that_goes_on_packing_is_handed_over():
    workers: list[Any] = [Worker(Received(1, 4, 4, packing=True)) for _ in range(2)]
    taken: list[object] = []
    await converse(workers[0], Client(b"one"), packing=taken.append)
    await converse(workers[1], Client(b"one"))
    assert taken == workers[:1]
    assert [worker.stopped for worker in workers] == [False, True]


class Silent(Client):
    """It waits for the worker to speak, and does not go."""

    async def receive(self):
        await asyncio.Event().wait()


async def test_a_worker_that_dies_at_its_start_is_told_though_the_client_waits_on():
    dead = Worker(None)
    dead.ended.set()
    async with asyncio.timeout(20):
        with pytest.raises(SystemFault, match="died"):
            await run(dead, Silent())


async def test_who_is_cancelled_stops_the_worker():
    waiting = soon(run(Worker(Received(1, 4, 4)), Silent()))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
