"""One call: messages in order both ways, windows that hold, and an end that both sides hear."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.rpc.grpc.status import CANCELLED, RESOURCE_EXHAUSTED, UNAVAILABLE, UNIMPLEMENTED, GrpcError
from husk.rpc.grpc.stream import MessageReader, ServerStream, framed, metadata_of
from husk.rpc.http2.core import PeerLimits
from tests.unit.rpc.grpc.pairs import connected


async def echo(stream: ServerStream) -> None:
    while (message := await stream.recv()) is not None:
        await stream.send(message)


@pytest.mark.parametrize("cut", [1, 3, 1 << 20])
async def test_messages_come_back_in_order(cut: int) -> None:
    async with connected(echo, cut) as (client, _), await client.call("/x/echo") as stream:
        for number in range(20):
            await stream.send(b"%d" % number)
        await stream.end()
        assert [await stream.recv() for _ in range(21)] == [*(b"%d" % number for number in range(20)), None]


async def test_many_messages_at_once_and_raw_bytes() -> None:
    async with connected(echo) as (client, _), await client.call("/x/echo") as stream:
        await stream.send_raw(framed(b"a") + framed(b"b"))
        await stream.send(b"c")
        await stream.end()
        received: list[bytes] = []
        while messages := await stream.recv_many():
            received += messages
        assert received == [b"a", b"b", b"c"]
    async with connected(echo) as (client, _), await client.call("/x/echo") as stream:
        await stream.send(b"raw")
        await stream.end()
        assert await stream.recv_raw() == framed(b"raw")
        assert await stream.recv_raw() == b""


async def test_messages_larger_than_the_window_arrive() -> None:
    large = bytes(3 << 20)
    async with (
        connected(echo, limits=PeerLimits(window=1 << 16)) as (client, _),
        await client.call("/x/echo") as stream,
    ):
        await stream.send(large)
        await stream.end()
        assert await stream.recv() == large


async def test_who_sends_waits_for_who_does_not_read() -> None:
    taken: asyncio.Event = asyncio.Event()

    async def slow(stream: ServerStream) -> None:
        await taken.wait()
        await echo(stream)

    async with connected(slow, limits=PeerLimits(window=1 << 16)) as (client, _), await client.call("/x") as stream:
        sending = asyncio.gather(*(stream.send(bytes(1 << 20)) for _ in range(2)))
        for _ in range(50):
            await asyncio.sleep(0)
        assert not sending.done()
        taken.set()
        await sending
        await stream.end()
        assert [len(message) async for message in _all(stream)] == [1 << 20, 1 << 20]


async def _all(stream):
    while (message := await stream.recv()) is not None:
        yield message


async def test_a_cancelled_call_cancels_its_handler() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def forever(stream: ServerStream) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with connected(forever) as (client, server):
        stream = await client.call("/x")
        await began.wait()
        stream.cancel()
        await ended.wait()
        with pytest.raises(GrpcError) as caught:
            await stream.recv()
        assert caught.value.code == CANCELLED
        assert server.http.stream_count == 0


async def test_a_message_that_is_too_large_ends_the_call_and_not_the_connection() -> None:
    async def liar(stream: ServerStream) -> None:
        await stream.send_raw(b"\x00" + (1 << 30).to_bytes(4, "big"))

    async with connected(liar) as (client, _):
        for _ in range(2):
            with pytest.raises(GrpcError) as caught:
                await client.unary("/x", b"")
            assert caught.value.code == RESOURCE_EXHAUSTED


async def test_half_a_message_at_the_end_is_an_error() -> None:
    async def half(stream: ServerStream) -> None:
        await stream.send_raw(framed(b"hello")[:-2])

    async with connected(half) as (client, _):
        with pytest.raises(GrpcError) as caught:
            await client.unary("/x", b"")
        assert caught.value.code == UNAVAILABLE


async def test_what_is_said_after_the_end_is_refused() -> None:
    async with connected(echo) as (client, _):
        stream = await client.call("/x")
        await stream.end()
        assert await stream.recv() is None
        with pytest.raises(GrpcError):
            await stream.send(b"late")
        await stream.end()
        stream.cancel()


def test_names_of_http_and_grpc_are_no_metadata() -> None:
    own = [
        (b"content-type", b"application/grpc"),
        (b"te", b"trailers"),
        (b"grpc-timeout", b"1S"),
        (b"user-agent", b"x"),
    ]
    headers = [*own, (b":path", b"/x"), (b"a", b"1"), (b"a", b"2"), (b"b", b"\xff")]
    assert metadata_of(headers) == {"a": ["1", "2"], "b": ["\xff"]}


@given(st.lists(st.binary(max_size=50), max_size=8), st.integers(1, 60))
def test_messages_survive_any_way_of_cutting(sent: list[bytes], step: int) -> None:
    data = b"".join(map(framed, sent))
    reader = MessageReader()
    received = [one for start in range(0, len(data), step) for one in reader.feed(data[start : start + step])]
    assert received == sent
    assert reader.waiting == 0


def test_an_unfinished_message_is_known() -> None:
    reader = MessageReader()
    assert reader.feed(framed(b"hello")[:-1]) == []
    assert reader.waiting == 9


def test_a_message_that_is_too_large_is_refused_by_its_head() -> None:
    with pytest.raises(GrpcError) as caught:
        MessageReader(largest=10).feed(framed(b"x" * 11)[:5])
    assert caught.value.code == RESOURCE_EXHAUSTED


def test_a_compressed_message_is_refused() -> None:
    with pytest.raises(GrpcError) as caught:
        MessageReader().feed(b"\x01" + bytes(4))
    assert caught.value.code == UNIMPLEMENTED
