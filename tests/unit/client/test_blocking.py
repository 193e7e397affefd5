import asyncio
import socket

import pytest

from husk.client import blocking
from husk.client.address import Address
from husk.client.client import Client, connected
from husk.errors import NotFound, Unavailable


@pytest.fixture
async def address(engine, tmp_path):
    await engine.listen(tmp_path / "engine.sock")
    return Address(f"unix://{tmp_path}/engine.sock")


async def _without_a_loop(address, work):
    """Return the result of work in a thread in which no event loop runs."""

    dial = blocking.dialer(address)
    assert dial is not None

    async def asked():
        async with connected(Client(dial)) as client:
            return await work(client)

    return await asyncio.to_thread(lambda: blocking.run(asked()))


async def test_calls_are_answered_without_a_loop(engine, address):
    engine.answers("GET", "/info", {"Name": "here"})
    engine.answers("GET", "/containers/json", [{"Id": "abc", "Names": ["/web"]}])

    async def work(client):
        return (await client.info())["Name"], [each.name for each in await client.containers.list()]

    assert await _without_a_loop(address, work) == ("here", ["web"])


async def test_one_question_takes_one_more_than_the_first_ping(engine, address):
    engine.answers("GET", "/info", {})
    await _without_a_loop(address, lambda client: client.info())
    assert [each.path for each in engine.asked] == ["/_ping", "/info"]


async def test_streams_are_read_to_their_end(engine, address):
    engine.answers("GET", "/events", b'{"Type": "container", "Action": "die"}\n{"Type": "image", "Action": "pull"}\n')

    async def work(client):
        return [event.action async for event in client.events()]

    assert await _without_a_loop(address, work) == ["die", "pull"]


async def test_failures_are_what_they_are_with_a_loop(address):
    with pytest.raises(NotFound):
        await _without_a_loop(address, lambda client: client.containers.get("nobody"))


async def test_a_socket_that_is_not_there_is_named(tmp_path):
    with pytest.raises(Unavailable, match=f"cannot reach an engine at unix://{tmp_path}/none"):
        await _without_a_loop(Address(f"unix://{tmp_path}/none"), lambda client: client.info())


def test_an_engine_that_says_nothing_is_waited_for_no_longer_than_was_said(tmp_path):
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "silent"))
        silent.listen()
        dial = blocking.dialer(Address(f"unix://{tmp_path}/silent"), timeout=0.05)
        assert dial is not None

        async def asked():
            await Client(dial).ping()

        with pytest.raises(TimeoutError):
            blocking.run(asked())


def test_other_addresses_need_a_loop():
    assert blocking.dialer(Address("tcp://127.0.0.1:2375")) is None
    assert blocking.dialer(Address("ssh://there")) is None


def test_work_that_waits_for_a_loop_is_refused():
    class Turn:
        def __await__(self):
            yield

    async def work():
        await Turn()

    with pytest.raises(RuntimeError, match="event loop"):
        blocking.run(work())
