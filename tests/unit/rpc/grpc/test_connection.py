"""Calls on one connection: side by side, to their end, and gone with it."""

import asyncio
import contextlib
import gc
import tracemalloc

import pytest

from husk.rpc.grpc.connection import GrpcConnection
from husk.rpc.grpc.status import DEADLINE_EXCEEDED, INTERNAL, NOT_FOUND, UNAVAILABLE, UNIMPLEMENTED, GrpcError
from husk.rpc.grpc.stream import LARGEST_MESSAGE, ServerStream, framed
from husk.rpc.http2 import frames
from husk.rpc.http2.core import PeerLimits
from tests.unit.rpc.grpc.pairs import Pipe, connected, pipes


async def shout(stream: ServerStream) -> None:
    message = await stream.recv()
    await stream.send((message or b"").upper())


async def forever(stream: ServerStream) -> None:
    await asyncio.Event().wait()


async def test_one_message_there_and_one_back() -> None:
    async with connected(shout) as (client, _):
        assert await client.unary("/x/shout", b"hello") == b"HELLO"


async def test_many_calls_at_once_wait_for_their_turn() -> None:
    async with connected(shout, limits=PeerLimits(streams=4)) as (client, server):
        await client.ping()
        answers = await asyncio.gather(*(client.unary("/x", b"m%d" % number) for number in range(50)))
        assert answers == [b"M%d" % number for number in range(50)]
        assert client.http.stream_count == server.http.stream_count == 0


async def test_metadata_goes_both_with_the_call_and_its_path() -> None:
    seen: list[object] = []

    async def look(stream: ServerStream) -> None:
        seen.append((stream.path, stream.metadata["dir-name"]))
        await stream.send(b"")

    async with connected(look) as (client, _):
        await client.unary("/x/y", b"", {"Dir-Name": ["a", "b"]})
    assert seen == [("/x/y", ["a", "b"])]


async def test_what_a_handler_raises_is_how_the_call_ends() -> None:
    async def refuse(stream: ServerStream) -> None:
        if stream.path == "/known":
            raise GrpcError(NOT_FOUND, "no such build: é", b"details")
        raise ValueError("broken")

    async with connected(refuse) as (client, _):
        with pytest.raises(GrpcError) as caught:
            await client.unary("/known", b"")
        error = caught.value
        assert (error.code, error.message, error.details) == (NOT_FOUND, "no such build: é", b"details")
        with pytest.raises(GrpcError) as caught:
            await client.unary("/unknown", b"")
        assert caught.value.code == INTERNAL


async def test_a_call_has_its_time() -> None:
    async with connected(forever) as (client, _):
        with pytest.raises(GrpcError) as caught:
            await client.unary("/x", b"", timeout=0.01)
        assert caught.value.code == DEADLINE_EXCEEDED
        with pytest.raises(GrpcError) as caught:
            await client.unary("/x", b"", {"grpc-timeout": ["10m"]})
        assert caught.value.code == DEADLINE_EXCEEDED


async def test_without_a_handler_calls_are_refused() -> None:
    one, other = pipes()
    async with GrpcConnection(one, client=True) as client, GrpcConnection(other):
        with pytest.raises(GrpcError) as caught:
            await client.unary("/x", b"")
        assert caught.value.code == UNIMPLEMENTED


async def test_when_the_connection_ends_everyone_hears_it() -> None:
    cancelled = asyncio.Event()

    async def wait(stream: ServerStream) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    one, other = pipes()
    async with GrpcConnection(one, client=True) as client, GrpcConnection(other, handler=wait) as server:
        stream = await client.call("/x")
        await client.ping()
        one.abort()
        await cancelled.wait()
        with pytest.raises(GrpcError) as caught:
            await stream.recv()
        assert caught.value.code == UNAVAILABLE
        await client.wait_closed()
        await server.wait_closed()
        with pytest.raises(GrpcError):
            await client.call("/x")
        with pytest.raises(GrpcError):
            await stream.send(b"")


async def test_a_peer_that_breaks_the_rules_is_told_and_left() -> None:
    one, other = pipes()
    async with GrpcConnection(other, handler=shout) as server:
        await one.write(frames.PREFACE + frames.settings({}) + frames.window_update(0, 0))
        await server.wait_closed()
        said = b""
        while data := await one.read():
            said += data
        assert frames.GOAWAY in [frame[0] for frame in frames.FrameReader().feed(said)]


async def test_a_peer_that_is_left_may_read_why_before_the_connection_goes() -> None:
    class Slow(Pipe):
        async def finish(self) -> None:
            await asyncio.sleep(0.05)
            self.abort()
            said.append("finished")

    said: list[str] = []
    one, other = Pipe(), Slow()
    one.other, other.other = other, one
    async with GrpcConnection(other, handler=shout) as server:
        await one.write(frames.PREFACE + frames.settings({}) + frames.window_update(0, 0))
        await server.wait_closed()
    assert said == ["finished"]


async def test_a_request_that_is_no_call_is_answered_by_http() -> None:
    one, other = pipes()
    async with GrpcConnection(one, client=True) as client, GrpcConnection(other, handler=shout):
        number = client.http.open([(b":method", b"GET"), (b":path", b"/"), (b":scheme", b"http")])
        client.flush()
        await client.ping()
        assert client.http.stream_count == 0, number


async def test_a_peer_that_reads_no_answers_is_not_read_from() -> None:
    """Pings without end are answered only as fast as the answers are taken."""
    one, other = pipes()
    stuck = asyncio.Event()

    async def never(data: bytes) -> None:
        await stuck.wait()

    other.write = never  # type: ignore[method-assign]
    async with GrpcConnection(other, handler=shout) as server:
        await one.write(frames.PREFACE + frames.settings({}))
        for _ in range(100):
            await one.write(frames.frame(frames.PING, 0, 0, bytes(8)) * 1000)
        assert server.http.backlog < 200_000
        stuck.set()


async def test_a_peer_that_does_not_begin_is_left() -> None:
    one, other = pipes()
    server = GrpcConnection(other, handler=shout)
    server.patience = 0.01
    async with server:
        await one.write(frames.PREFACE[:5])
        await server.wait_closed()
    assert other.finished


async def test_messages_of_all_streams_together_have_a_limit() -> None:
    one, other = pipes()
    held = asyncio.Event()

    async def keep(stream: ServerStream) -> None:
        assert await stream.recv()
        held.set()
        await stream.recv()  # it still has the first

    async with GrpcConnection(one, client=True) as client, GrpcConnection(other, handler=keep, most=100):
        first = await client.call("/x")
        await first.send(b"x" * 60)
        await held.wait()
        second = await client.call("/x")
        await second.send(b"x" * 60)
        with pytest.raises(GrpcError, match=r"more than 100 bytes|reset"):
            await second.recv()
        assert not first.over, "others are not touched"
        first.cancel()
        await client.ping()
        third = await client.call("/x")
        held.clear()
        await third.send(b"x" * 60)
        await held.wait()


async def test_what_comes_for_calls_that_nobody_reads_counts_as_well() -> None:
    one, other = pipes()

    async def read_nothing(stream: ServerStream) -> None:
        await asyncio.Event().wait()

    async with GrpcConnection(one, client=True) as client, GrpcConnection(other, handler=read_nothing, most=100):
        first, second = await client.call("/x"), await client.call("/x")
        await first.send(b"x" * 60)
        await client.ping()
        assert not first.over
        await second.send(b"x" * 60)
        with pytest.raises(GrpcError):
            await second.recv()
        assert not first.over


@pytest.mark.parametrize("end", ["too much", "reset"])
async def test_of_a_call_that_is_over_no_bytes_are_kept(end: str) -> None:
    """Also before circles are looked for, which may take long: bytes alone make nobody look."""
    one, other = pipes()
    streams: list[ServerStream] = []

    async def read(stream: ServerStream) -> None:
        streams.append(stream)
        await stream.recv()

    piece = b"x" * 10_000
    gc.disable()
    tracemalloc.start()
    try:
        async with GrpcConnection(one, client=True) as client, GrpcConnection(other, handler=read, most=1_000_000):
            call = await client.call("/x")
            with contextlib.suppress(GrpcError):
                await call.send_raw(framed(bytes(LARGEST_MESSAGE))[:900_000])
                await client.ping()
                if end == "reset":
                    call.cancel()
                while end == "too much":
                    await call.send_raw(piece)
            await client.ping()
            assert tracemalloc.get_traced_memory()[0] < 500_000
            assert len(streams) == 1
    finally:
        tracemalloc.stop()
        gc.enable()


async def test_small_pieces_of_what_is_not_read_are_put_together() -> None:
    one, other = pipes()
    streams: list[ServerStream] = []
    go = asyncio.Event()

    async def keep(stream: ServerStream) -> None:
        streams.append(stream)
        await go.wait()
        assert await stream.recv() == b"y" * 3000
        await stream.send(b"read")

    async with GrpcConnection(one, client=True) as client, GrpcConnection(other, handler=keep):
        call = await client.call("/x")
        for byte in framed(b"y" * 3000):
            await call.send_raw(bytes([byte]))
            await client.ping()
        assert len(streams[0]._raw) == 1
        go.set()
        assert await call.recv() == b"read"
