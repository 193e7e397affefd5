"""Traffic that the daemon itself passes on: as many as there is room for, and nobody for ever."""

import asyncio
import socket
from collections.abc import Iterator

import pytest

from husk.aio.tasks import Tasks
from husk.network.acceptor import Quota
from husk.network.ports import PublishedPort
from husk.network.relay import Relay
from tests.support.bridges import until


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=100) as made:
        made.settimeout(5)
        yield made


@pytest.fixture
def held() -> Iterator[socket.socket]:
    with socket.create_server(("::1", 0), family=socket.AF_INET6, backlog=100) as made:
        made.setblocking(False)
        yield made


def port(held: socket.socket, server: socket.socket) -> PublishedPort:
    return PublishedPort("tcp", "::1", held.getsockname()[1], "127.0.0.1", server.getsockname()[1])


async def call(held: socket.socket) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("::1", held.getsockname()[1])


async def answered(server: socket.socket) -> socket.socket:
    return (await asyncio.to_thread(server.accept))[0]


async def test_who_says_nothing_for_long_is_hung_up_on(server, held):
    relay = Relay(idle=0.3)
    relay.serve(port(held, server), held)
    reader, writer = await call(held)
    with await answered(server) as end:
        end.settimeout(5)
        for _ in range(3):
            writer.write(b"hello")
            assert await asyncio.to_thread(end.recv, 10) == b"hello"
        assert await asyncio.wait_for(reader.read(), 10) == b""
    writer.close()
    relay.stop(port(held, server))
    await relay.close()


async def test_a_port_takes_no_more_than_its_share_and_others_go_on(server, held):
    quota, tasks = Quota(each=4, in_all=100), Tasks()
    relay = Relay(quota)
    relay.serve(port(held, server), held)
    callers = [await call(held) for _ in range(5)]
    ends = [await answered(server) for _ in range(2)]
    heard = [tasks.spawn(reader.read(), "listen", awaited=True) for reader, _ in callers]
    await until(lambda: sum(task.done() for task in heard) == 3)
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as other:
        other.setblocking(False)
        relay.serve(port(other, server), other)
        _, writer = await call(other)
        (await answered(server)).close()
        writer.close()
        relay.stop(port(other, server))
    for end in ends:
        end.close()
    for _, writer in callers:
        writer.close()
    # What they had is there for the next ones.
    await until(lambda: quota.take(port(held, server).key, 4))
    await asyncio.gather(*heard, return_exceptions=True)
    relay.stop(port(held, server))
    await relay.close()
