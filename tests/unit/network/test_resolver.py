"""Questions of one container take a share of the daemon's time, and no more."""

import asyncio
import socket
from contextlib import suppress

import pytest

from husk.network import dns
from husk.network import resolver as module
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
        resolver._budget.spend(module._ALLOWANCE / 10)
        return dns.addresses(query, [])

    resolver = Resolver(answer, list, Quota(10, 10), "container")
    resolver._budget = Budget(clock)
    datagrams, listener = bound(socket.SOCK_DGRAM), bound(socket.SOCK_STREAM)
    listener.listen()
    question = bytes.fromhex("000701000001000000000000") + dns.encode_name("one") + b"\0\x01\0\x01"
    with bound(socket.SOCK_DGRAM) as client:
        client.connect(datagrams.getsockname())
        for _ in range(50):
            client.send(question)
        resolver.serve(datagrams, listener)
        async with asyncio.timeout(10):
            while resolver._resting is None:
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


@pytest.mark.parametrize("false", [0, module._MOST_FALSE - 1, module._MOST_FALSE])
async def test_a_server_that_lies_over_udp_is_heard_so_often(monkeypatch: pytest.MonkeyPatch, false: int) -> None:
    loop = asyncio.get_running_loop()
    with bound(socket.SOCK_DGRAM) as server:
        monkeypatch.setattr(module, "_where", lambda _: server.getsockname())
        asked = loop.create_task(module._ask_by_datagram("127.0.0.1", QUERY, QUESTION))
        _, caller = await loop.sock_recvfrom(server, 1000)
        for answer in [FALSE] * false + [dns.addresses(QUERY, [])]:
            server.sendto(answer, caller)
        if false < module._MOST_FALSE:
            assert dns.answers(QUERY, await asyncio.wait_for(asked, 10))
        else:
            with pytest.raises(OSError, match="do not answer the question"):
                await asyncio.wait_for(asked, 10)


@pytest.mark.parametrize("false", [0, module._MOST_FALSE - 1, module._MOST_FALSE])
@pytest.mark.parametrize("said", [b"", FALSE])
async def test_a_server_that_lies_over_tcp_is_heard_so_often(
    monkeypatch: pytest.MonkeyPatch, false: int, said: bytes
) -> None:
    loop = asyncio.get_running_loop()
    with bound(socket.SOCK_STREAM) as listener:
        listener.listen()
        monkeypatch.setattr(module, "_where", lambda _: listener.getsockname())
        asked = loop.create_task(module._ask_by_stream("127.0.0.1", QUERY, QUESTION))
        connection, _ = await loop.sock_accept(listener)
        with connection:
            for answer in [said] * false + [dns.addresses(QUERY, [])]:
                await loop.sock_sendall(connection, len(answer).to_bytes(2) + answer)
            if false < module._MOST_FALSE:
                assert dns.answers(QUERY, await asyncio.wait_for(asked, 10))
            else:
                with pytest.raises(OSError, match="do not answer the question"):
                    await asyncio.wait_for(asked, 10)


async def test_what_is_opened_for_a_container_that_has_ended_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = bound(socket.SOCK_DGRAM), bound(socket.SOCK_STREAM)
    resolver = Resolver(lambda query: None, list, Quota(10, 10), "container")

    def slowly(_: str) -> tuple[socket.socket, socket.socket]:
        loop.call_soon_threadsafe(resolver.close)
        return made

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(module, "_sockets", slowly)
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
        long = QUESTION + bytes(module._LONGEST_QUESTION - len(QUESTION))
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
