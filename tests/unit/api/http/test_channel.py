"""The transport of a client: what can still be asked of it when the client has gone."""

import asyncio
import os
import socket

import pytest

from husk.api.http.channel import Channel
from tests.unit.api.loops import on_both_loops, until


class Listener(Channel):
    """Keeps what comes."""

    def __init__(self) -> None:
        super().__init__()
        self.data = b""

    def data_received(self, data: bytes) -> None:
        self.data += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone = True
        self.resume_writing()


async def pair() -> tuple[Listener, socket.socket]:
    ours, theirs = socket.socketpair()
    _, channel = await asyncio.get_running_loop().create_unix_connection(Listener, sock=ours)
    return channel, theirs


@on_both_loops
async def test_input_is_held_and_goes_on_and_can_be_lent() -> None:
    channel, theirs = await pair()
    assert channel.is_local and channel.peer is None
    channel.hold_input()
    theirs.send(b"one")
    for _ in range(5):
        await asyncio.sleep(0)
    assert channel.data == b""
    channel.let_input_go_on()
    await until(lambda: channel.data == b"one")
    descriptor = channel.lend_input()
    theirs.send(b"two")
    channel.let_input_go_on()  # not while somebody else reads
    for _ in range(5):
        await asyncio.sleep(0)
    assert os.read(descriptor, 10) == b"two"
    os.close(descriptor)
    channel.abort()
    theirs.close()


@on_both_loops
async def test_who_writes_waits_for_a_client_that_does_not_read() -> None:
    channel, theirs = await pair()
    while not channel.write_paused:
        channel.write_now(bytes(100_000))
    assert channel.unsent > 0 and channel.unread_by_client > 0
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(channel.drained(), 0.05)
    theirs.setblocking(False)

    def drain() -> bool:
        while True:
            try:
                theirs.recv(1 << 20)
            except BlockingIOError:
                return not channel.write_paused

    await until(drain)
    await channel.drained()
    theirs.close()
    with pytest.raises(ConnectionResetError):
        while True:
            channel.write_pieces([b"x", b"y"])
            await asyncio.sleep(0)
    assert channel.left  # told at once, also before the loop says so
    with pytest.raises(ConnectionResetError):
        channel.write_now(b"x")
    with pytest.raises(ConnectionResetError):
        channel.duplicate()
    with pytest.raises(ConnectionResetError):
        await channel.drained()
    assert not channel.end_output()
    channel.close()
    channel.abort()


@on_both_loops
async def test_a_hangup_is_seen_without_reading() -> None:
    channel, theirs = await pair()
    channel.hold_input()
    channel.watch_hangup()
    theirs.shutdown(socket.SHUT_WR)
    await asyncio.sleep(0.02)
    assert not channel.gone  # a half-close is no hangup
    theirs.close()
    await until(lambda: channel.gone)


@on_both_loops
async def test_the_rest_of_input_has_an_end_though_the_client_sends_on() -> None:
    channel, theirs = await pair()
    channel.hold_input()
    theirs.send(b"the rest")
    assert channel.rest_of_input() == b"the rest"
    with open("/dev/zero", "rb") as endless:
        channel._socket = endless  # type: ignore[assignment]
        assert len(channel.rest_of_input()) == 8 << 20
    channel.abort()
    theirs.close()
