"""Sessions come and go with their connections."""

import asyncio

import pytest

from husk.aio.tasks import Tasks
from husk.builder.protocol.session.attach import ID, METHODS, SHARED_KEY, Heartbeat, attach
from husk.builder.solver.sessions import Sessions
from husk.errors import Conflict, InvalidParameter, Unavailable
from husk.rpc.grpc.connection import GrpcConnection
from tests.unit.rpc.grpc.pairs import pipes

HEADERS = {ID: ["one"], SHARED_KEY: ["key"], METHODS: ["/a/B", "/c/D"]}


async def test_a_session_is_there_as_long_as_its_connection():
    sessions, tasks = Sessions(), Tasks()
    ours, theirs = pipes()
    attached = tasks.spawn(attach(ours, HEADERS, sessions), "attach", awaited=True)
    async with GrpcConnection(theirs):
        session = await sessions.get("one")
        assert (session.id, session.shared_key) == ("one", "key")
        with pytest.raises(Conflict):
            other, _ = pipes()
            await attach(other, HEADERS, sessions)
    await attached
    with pytest.raises(Unavailable):
        await sessions.get("one", patience=0)


async def test_a_client_that_does_not_answer_is_given_up():
    async def forever(stream):
        await asyncio.Event().wait()

    sessions = Sessions()
    ours, theirs = pipes()
    async with GrpcConnection(theirs, handler=forever):
        await attach(ours, HEADERS, sessions, Heartbeat(0.01, 0.01))


async def test_a_client_that_answers_stays():
    asked = 0

    async def well(stream):
        nonlocal asked
        asked += 1
        await stream.send(b"\x08\x01")

    sessions, tasks = Sessions(), Tasks()
    ours, theirs = pipes()
    attached = tasks.spawn(attach(ours, HEADERS, sessions, Heartbeat(interval=0.01)), "attach", awaited=True)
    async with GrpcConnection(theirs, handler=well):
        async with asyncio.timeout(10):
            while asked < 4:
                await asyncio.sleep(0.01)
        assert not attached.done()
    await attached


async def test_a_session_needs_a_name():
    ours, _ = pipes()
    with pytest.raises(InvalidParameter, match="needs the header"):
        await attach(ours, {}, Sessions())
