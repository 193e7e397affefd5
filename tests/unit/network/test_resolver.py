"""Questions of one container take a share of the daemon's time, and no more."""

import asyncio
import socket
from contextlib import suppress

import pytest

from husk.network import dns
from husk.network.acceptor import Quota
from husk.network.resolver import Budget, Resolver


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_time_comes_back_as_fast_as_its_share():
    clock = Clock()
    budget = Budget(clock)
    budget.spend(0.019)
    assert not budget.pause()
    budget.spend(0.011)
    assert round(budget.pause(), 3) == 0.075
    clock.now += 0.04
    assert round(budget.pause(), 3) == 0.035
    clock.now += 0.036
    assert not budget.pause()
    clock.now += 1000
    budget.spend(0.021)
    assert budget.pause(), "nothing is saved up"


def bound(kind: socket.SocketKind) -> socket.socket:
    made = socket.socket(socket.AF_INET, kind | socket.SOCK_NONBLOCK)
    made.bind(("127.0.0.1", 0))
    return made


async def test_what_is_over_the_share_waits_in_the_socket():
    clock, asked = Clock(), list[str]()

    def answer(query: dns.DnsQuery) -> bytes:
        asked.append(query.name)
        # As if it took a tenth of what may be taken at once.
        budget.spend(0.002)
        return dns.addresses(query, [])

    budget = Budget(clock)
    resolver = Resolver(answer, list, Quota(10, 10), "container", budget=budget)
    datagrams, listener = bound(socket.SOCK_DGRAM), bound(socket.SOCK_STREAM)
    listener.listen()
    question = bytes.fromhex("000701000001000000000000") + dns.encode_name("one") + b"\0\x01\0\x01"
    with bound(socket.SOCK_DGRAM) as client:
        client.connect(datagrams.getsockname())
        for _ in range(50):
            client.send(question)
        resolver.serve(datagrams, listener)
        async with asyncio.timeout(10):
            while not budget.pause():
                await asyncio.sleep(0)
        first = len(asked)
        assert 10 <= first <= 16, "others have their turn"
        while len(asked) < 50:
            clock.now += 1
            async with asyncio.timeout(10):
                await asyncio.sleep(0.001)
        assert len(client.recv(1000)) > 12
    resolver.close()
    resolver.close()


QUESTION = bytes.fromhex("000701000001000000000000") + dns.encode_name("one") + b"\0\x01\0\x01"
QUERY = dns.parse(QUESTION)
FALSE = b"\xff" + dns.addresses(QUERY, [])[1:]


def asking(server: socket.socket) -> tuple[Resolver, socket.socket, socket.socket]:
    """A resolver that asks this server, and where it is asked."""
    host, port = server.getsockname()
    resolver = Resolver(lambda query: None, lambda: [host], Quota(10, 10), "container", port=port)
    datagrams, listener = bound(socket.SOCK_DGRAM), bound(socket.SOCK_STREAM)
    listener.listen()
    resolver.serve(datagrams, listener)
    return resolver, datagrams, listener


def outcome(response: bytes) -> str:
    return "failure" if dns.code(response) == dns.SERVER_FAILURE else "answer" if dns.answers(QUERY, response) else ""


# Of a server: one more, and it is guessing.
FALSE_TAKEN = 15


@pytest.mark.parametrize(("false", "told"), [(0, "answer"), (FALSE_TAKEN, "answer"), (FALSE_TAKEN + 1, "failure")])
async def test_a_server_that_lies_over_udp_is_heard_so_often(false: int, told: str) -> None:
    loop = asyncio.get_running_loop()
    with bound(socket.SOCK_DGRAM) as server, bound(socket.SOCK_DGRAM) as client:
        resolver, datagrams, _ = asking(server)
        client.connect(datagrams.getsockname())
        client.send(QUESTION)
        _, caller = await loop.sock_recvfrom(server, 1000)
        for answer in [FALSE] * false + [dns.addresses(QUERY, [])]:
            server.sendto(answer, caller)
        assert outcome(await asyncio.wait_for(loop.sock_recv(client, 1000), 10)) == told
        resolver.close()


@pytest.mark.parametrize(("false", "told"), [(0, "answer"), (FALSE_TAKEN, "answer"), (FALSE_TAKEN + 1, "failure")])
@pytest.mark.parametrize("said", [b"", FALSE])
async def test_a_server_that_lies_over_tcp_is_heard_so_often(false: int, told: str, said: bytes) -> None:
    loop = asyncio.get_running_loop()
    with bound(socket.SOCK_STREAM) as server:
        server.listen()
        resolver, _, listener = asking(server)
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(len(QUESTION).to_bytes(2) + QUESTION)
        connection, _ = await loop.sock_accept(server)
        with connection:
            for answer in [said] * false + [dns.addresses(QUERY, [])]:
                await loop.sock_sendall(connection, len(answer).to_bytes(2) + answer)
            async with asyncio.timeout(10):
                response = await reader.readexactly(int.from_bytes(await reader.readexactly(2)))
        assert outcome(response) == told
        writer.close()
        resolver.close()


async def test_what_is_opened_for_a_container_that_has_ended_is_closed() -> None:
    made = bound(socket.SOCK_DGRAM), bound(socket.SOCK_STREAM)

    def slowly(_: str) -> tuple[socket.socket, socket.socket]:
        loop.call_soon_threadsafe(resolver.close)
        return made

    loop = asyncio.get_running_loop()
    resolver = Resolver(lambda query: None, list, Quota(10, 10), "container", sockets=slowly)
    await resolver.open("/nowhere")
    assert [one.fileno() for one in made] == [-1, -1]


async def test_a_conversation_holds_little_memory() -> None:
    datagrams, listener = bound(socket.SOCK_DGRAM), bound(socket.SOCK_STREAM)
    listener.listen()
    quota = Quota(10, 10)
    resolver = Resolver(lambda query: dns.addresses(query, []), list, quota, "container")
    resolver.serve(datagrams, listener)
    try:
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        long = QUESTION + bytes(4096 - len(QUESTION))
        writer.write(len(long).to_bytes(2) + long)
        async with asyncio.timeout(10):
            assert dns.answers(QUERY, await reader.readexactly(int.from_bytes(await reader.readexactly(2))))
        (conversation,) = resolver._writers
        assert conversation.transport.get_write_buffer_limits() == (0, 0), "one answer is out before the next question"
        # The rest is not waited for.
        writer.write((len(long) + 1).to_bytes(2))
        async with asyncio.timeout(10):
            with suppress(ConnectionError):
                assert await reader.read() == b""
            while not quota.take("container", 10):
                await asyncio.sleep(0)
        writer.close()
    finally:
        resolver.close()
