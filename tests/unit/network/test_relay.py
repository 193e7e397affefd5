"""A port that leads elsewhere leads everybody elsewhere: another container may have the former address by then."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from husk.network.acceptor import Quota
from husk.network.ports import PublishedPort
from husk.network.relay import Relay


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as sockets:
        yield sockets


def bound(opened: ExitStack, kind: socket.SocketKind, address: str, port: int = 0) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = opened.enter_context(socket.socket(family, kind | socket.SOCK_NONBLOCK))
    made.bind((address, port))
    if kind == socket.SOCK_STREAM:
        made.listen()
    return made


def published(held: socket.socket, target: socket.socket) -> PublishedPort:
    kind = "udp" if held.type == socket.SOCK_DGRAM else "tcp"
    return PublishedPort(kind, "::1", held.getsockname()[1], *target.getsockname()[:2])


async def heard(by: socket.socket) -> bytes:
    async with asyncio.timeout(10):
        return await asyncio.get_running_loop().sock_recv(by, 100)


def silent(one: socket.socket) -> bool:
    try:
        one.recv(100)
    except BlockingIOError:
        return True
    return False


async def test_clients_of_udp_move_with_the_port(opened: ExitStack) -> None:
    held = bound(opened, socket.SOCK_DGRAM, "::1")
    old, new = (bound(opened, socket.SOCK_DGRAM, address) for address in ("127.0.0.1", "127.0.0.2"))
    quota = Quota(1, 1)
    relay = Relay(quota)
    relay.serve(published(held, old), held)
    client = opened.enter_context(socket.socket(socket.AF_INET6, socket.SOCK_DGRAM))
    client.connect(held.getsockname())
    client.send(b"one")
    assert await heard(old) == b"one"
    # Served again, as it is: nothing changes.
    (kept,) = relay._clients.values()
    relay.serve(published(held, old), held)
    assert list(relay._clients.values()) == [kept]
    relay.serve(published(held, new), held)
    client.send(b"two")
    assert await heard(new) == b"two"
    assert silent(old)
    relay.stop(published(held, new))
    assert quota.take("whoever")
    await relay.close()


async def test_connections_do_not_stay_at_the_former_address(opened: ExitStack) -> None:
    held = bound(opened, socket.SOCK_STREAM, "::1")
    old, new = (bound(opened, socket.SOCK_STREAM, address) for address in ("127.0.0.1", "127.0.0.2"))
    other, elsewhere = bound(opened, socket.SOCK_STREAM, "::1"), bound(opened, socket.SOCK_STREAM, "127.0.0.3")
    loop, quota = asyncio.get_running_loop(), Quota(10, 10)
    relay = Relay(quota)
    relay.serve(published(held, old), held)
    relay.serve(published(other, elsewhere), other)
    reader, writer = await asyncio.open_connection(*held.getsockname()[:2])
    _, apart = await asyncio.open_connection(*other.getsockname()[:2])
    first, _ = await loop.sock_accept(old)
    far, _ = await loop.sock_accept(elsewhere)
    opened.enter_context(first), opened.enter_context(far)
    writer.write(b"one")
    assert await heard(first) == b"one"
    relay.serve(published(held, new), held)
    async with asyncio.timeout(10):
        with suppress(ConnectionError):
            assert await reader.read() == b""
    with suppress(ConnectionError):
        assert await heard(first) == b""
    _, again = await asyncio.open_connection(*held.getsockname()[:2])
    second, _ = await loop.sock_accept(new)
    opened.enter_context(second)
    again.write(b"two")
    apart.write(b"three")
    assert await heard(second) == b"two"
    assert await heard(far) == b"three", "other ports are no matter of this one"
    for one in (writer, again, apart):
        one.close()
    await relay.close()


@pytest.mark.parametrize("again", [True, False])
async def test_who_is_let_in_too_late_is_not_passed_on(
    opened: ExitStack, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    held = bound(opened, socket.SOCK_STREAM, "::1")
    old, new = (bound(opened, socket.SOCK_STREAM, address) for address in ("127.0.0.1", "127.0.0.2"))
    loop, relay = asyncio.get_running_loop(), Relay()
    begun, late = asyncio.Event(), asyncio.Event()
    connect = asyncio.open_connection

    async def slowly(*where: object, **options: object) -> object:
        if where == old.getsockname():
            begun.set()
            await late.wait()
        return await connect(*where, **options)  # type: ignore[arg-type]

    relay.serve(published(held, old), held)
    caller = opened.enter_context(socket.socket(socket.AF_INET6, socket.SOCK_STREAM | socket.SOCK_NONBLOCK))
    monkeypatch.setattr(asyncio, "open_connection", slowly)
    await loop.sock_connect(caller, held.getsockname())
    await loop.sock_sendall(caller, b"a secret")
    async with asyncio.timeout(10):
        await begun.wait()
    relay.stop(published(held, old))
    if again:
        relay.serve(published(held, new), held)
    late.set()
    async with asyncio.timeout(10):
        with suppress(ConnectionError):
            assert await loop.sock_recv(caller, 1) == b""
    first, _ = await loop.sock_accept(old)
    assert await heard(opened.enter_context(first)) == b"", "it was connected, and is told nothing"
    await relay.close()
