"""The end of a server: what is under way gets its time, the rest goes at once."""

import asyncio
import sys
import time
from collections.abc import Coroutine
from pathlib import Path

import pytest

from husk.api.http import h2c
from husk.api.http.errors import BadRequest, BodyCutOff
from husk.api.http.parser import PREFACE
from husk.api.http.request import Request
from husk.api.http.response import Answer, Response, StreamedResponse, Unanswered, fields
from husk.api.http.server import Server, plain_refusal
from tests.unit.api.http.conftest import serving
from tests.unit.api.http.test_bodies import BAD
from tests.unit.api.http.test_parser import AMBIGUOUS
from tests.unit.api.loops import on_both_loops, until

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@on_both_loops
async def test_idle_clients_go_at_once_and_others_with_their_answer(tmp_path: Path) -> None:
    gate, begun = asyncio.Event(), asyncio.Event()

    async def handler(request: Request) -> Answer:
        begun.set()
        await gate.wait()
        return Response(200, b"last")

    server = Server(handler)
    listening = await asyncio.get_running_loop().create_unix_server(server, str(tmp_path / "s"))
    (idle, _), (busy, writer) = [await asyncio.open_unix_connection(str(tmp_path / "s")) for _ in range(2)]
    writer.write(GET)
    await begun.wait()
    listening.close()
    closing = asyncio.get_running_loop().create_task(server.close(20))
    assert await idle.read() == b""
    assert not closing.done()
    gate.set()
    answer = await busy.read()
    assert b"Connection: close\r\n" in answer and answer.endswith(b"last")
    await closing


@on_both_loops
async def test_who_takes_too_long_is_cut_off(tmp_path: Path) -> None:
    ended: list[str] = []
    begun = asyncio.Event()

    async def handler(request: Request) -> Answer:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")
        return Response(200)

    server = Server(handler)
    listening = await asyncio.get_running_loop().create_unix_server(server, str(tmp_path / "s"))
    reader, writer = await asyncio.open_unix_connection(str(tmp_path / "s"))
    writer.write(GET)
    await begun.wait()
    listening.close()
    await server.close(0.05)
    assert ended == ["cancelled"]
    assert await reader.read() == b""


def test_what_is_no_request_is_answered_in_plain_text() -> None:
    assert plain_refusal(BadRequest("malformed"))[1] == b"400: malformed\n"


NUMBERED_GET = b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n"

# `writelines` of asyncio's own transports asks nobody to pause in these versions (CPython issue 127655). The daemon
# runs on uvloop, which does.
_NEVER_PAUSES = (3, 12) <= sys.version_info < (3, 12, 9) or (3, 13) <= sys.version_info < (3, 13, 2)


def at_once(request: Request) -> Answer:
    return Response(200, request.raw_path)


async def later(request: Request) -> Answer:
    await asyncio.sleep(0)
    return Response(200, request.raw_path)


def mixed(request: Request) -> Answer | Coroutine[object, object, Answer]:
    return at_once(request) if int(request.raw_path[1:]) % 3 else later(request)


async def echo(request: Request) -> Answer:
    body = await request.body.document(1 << 20) if request.body is not None else b"-"
    return Response(200, body)


@on_both_loops
async def test_requests_behind_each_other_are_answered_in_order(tmp_path: Path) -> None:
    async with serving(mixed, tmp_path) as connect, connect() as client:
        client.send(b"".join(NUMBERED_GET % number for number in range(50)))
        assert [await client.answer() for _ in range(50)] == [(200, b"/%d" % number) for number in range(50)]


@on_both_loops
async def test_a_client_that_half_closes_gets_all_its_answers(tmp_path: Path) -> None:
    async with serving(mixed, tmp_path) as connect, connect() as client:
        client.send(b"".join(NUMBERED_GET % number for number in range(10)))
        client.end()
        assert [await client.answer() for _ in range(10)] == [(200, b"/%d" % number) for number in range(10)]
        assert await client.closed()


BODIES = [
    b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
    b"POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nwor\r\n2\r\nld\r\n0\r\n\r\n",
    b"GET /c HTTP/1.1\r\nHost: x\r\n\r\n",
]


@on_both_loops
async def test_bodies_cut_at_every_byte(tmp_path: Path) -> None:
    data = b"".join(BODIES)
    async with serving(echo, tmp_path) as connect, connect() as client:
        for cut in range(1, len(data)):
            client.send(data[:cut])
            for _ in range(3):
                await asyncio.sleep(0)
            client.send(data[cut:])
            assert [await client.answer() for _ in range(3)] == [(200, b"hello"), (200, b"world"), (200, b"-")]


@pytest.mark.parametrize("data", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
async def test_what_is_no_request_is_told_so_and_the_connection_ends(tmp_path: Path, data: bytes) -> None:
    async with serving(at_once, tmp_path, tcp=True) as connect, connect() as client:
        client.send(NUMBERED_GET % 1 + data + NUMBERED_GET % 2)
        assert await client.answer() == (200, b"/1")
        status, body = await client.answer()
        assert status == 400 and body
        assert await client.closed()


@pytest.mark.parametrize("data", BAD.values(), ids=BAD.keys())
async def test_a_body_that_is_none_ends_the_connection(tmp_path: Path, data: bytes) -> None:
    """A smuggler's request behind it is never served, whether the handler reads the body or not."""
    served: list[bytes] = []

    async def handler(request: Request) -> Answer:
        served.append(request.raw_path)
        if request.raw_path == b"/read" and request.body is not None:
            await request.body.document(1 << 20)
        return Response(200)

    for path in (b"/read", b"/ignore"):
        async with serving(handler, tmp_path) as connect, connect() as client:
            client.send(
                b"POST %b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" % path + data + NUMBERED_GET % 9
            )
            client.end()
            await client.rest()
        (tmp_path / "s").unlink(missing_ok=True)
    assert b"/9" not in served


@on_both_loops
async def test_a_body_that_nobody_reads_is_read_over(tmp_path: Path) -> None:
    async with serving(at_once, tmp_path) as connect, connect() as client:
        client.send(b"POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n01234")
        assert await client.answer() == (200, b"/1")
        client.send(b"56789" + NUMBERED_GET % 2)
        assert await client.answer() == (200, b"/2")


@on_both_loops
async def test_a_large_body_that_nobody_reads_ends_the_connection_behind_the_answer(tmp_path: Path) -> None:
    async with serving(at_once, tmp_path, tcp=True) as connect, connect() as client:
        client.send(b"POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n" + bytes(9_000_000))
        assert await client.answer() == (200, b"/1")
        assert await client.closed()


@on_both_loops
async def test_a_large_body_waits_for_its_reader(tmp_path: Path) -> None:
    size = 20 << 20
    gate = asyncio.Event()

    async def slow(request: Request) -> Answer:
        assert request.body is not None
        total = len(await request.body.read(1000))
        assert total == 1000
        await gate.wait()
        while data := await request.body.read(1 << 18):
            assert len(data) <= 1 << 18
            total += len(data)
        return Response(200, b"%d" % total)

    async with serving(slow, tmp_path) as connect, connect() as client:
        client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size + bytes(size))
        # The client cannot get rid of it all.
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(client.writer.drain(), 0.3)
        gate.set()
        assert await client.answer() == (200, b"%d" % size)


@on_both_loops
async def test_a_client_is_asked_for_a_body_that_it_holds_back(tmp_path: Path) -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
    async with serving(echo, tmp_path) as connect, connect() as client:
        client.send(head)
        assert await client.head() == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.send(b"hello" + NUMBERED_GET % 1)
        assert await client.answer() == (200, b"hello")
        assert await client.answer() == (200, b"-")
    async with serving(at_once, tmp_path) as connect, connect() as client:
        client.send(head)
        assert await client.answer() == (200, b"/")
        assert await client.closed()
    async with serving(at_once, tmp_path) as connect, connect() as client:
        client.send(head.replace(b"100-continue", b"wonders"))
        assert (await client.answer())[0] == 417


@on_both_loops
async def test_a_body_that_is_cut_off(tmp_path: Path) -> None:
    seen: list[BaseException] = []

    async def reads(request: Request) -> Answer:
        assert request.body is not None
        try:
            return Response(200, await request.body.document(100))
        except BodyCutOff as error:
            seen.append(error)
            return Response(400, b"cut off")

    async with serving(reads, tmp_path) as connect, connect() as client:
        client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhel")
        client.end()
        assert await client.answer() == (400, b"cut off")
        assert await client.closed()
    assert len(seen) == 1


@on_both_loops
async def test_what_a_client_sent_is_read_though_it_left_and_a_word_to_it_failed(tmp_path: Path) -> None:
    requests: list[Request] = []
    left = asyncio.Event()

    async def tells(request: Request) -> Answer:
        requests.append(request)
        response = StreamedResponse(request, fields({"X": "y"}))
        await left.wait()
        while True:
            await response.write(b"a word")
            await asyncio.sleep(0)

    async with serving(tells, tmp_path) as connect, connect() as client:
        client.send(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        await until(lambda: bool(requests))
        [request] = requests
        sent = 0
        while not request.connection._reading_paused:
            client.send(b"1000\r\n" + bytes(4096) + b"\r\n")
            await asyncio.sleep(0.001)
            sent += 4096
        client.send(b"1000\r\n" + bytes(4096) + b"\r\n0\r\n\r\n")
        await client.writer.drain()
        client.writer.transport.abort()
        await asyncio.sleep(0.01)
        left.set()
        await until(lambda: request.connection.gone)
        assert request.body is not None
        assert len(await request.body.document(1 << 22)) == sent + 4096


@on_both_loops
async def test_a_stream_is_sent_piece_by_piece(tmp_path: Path) -> None:
    gate = asyncio.Event()

    async def streams(request: Request) -> Answer:
        response = StreamedResponse(request, fields({"X": "y"}))
        await response.write(b"one")
        await response.write(b"")
        await gate.wait()
        await response.write(bytes(100_000))
        await response.write_eof()
        return response

    async with serving(streams, tmp_path) as connect, connect() as client:
        client.send(NUMBERED_GET % 1)
        assert b"X: y\r\n" in (head := await client.head()) and b"Transfer-Encoding: chunked\r\n" in head
        assert await client.reader.readuntil(b"one\r\n") == b"3\r\none\r\n"
        gate.set()
        last = b"186a0\r\n" + bytes(100_000) + b"\r\n0\r\n\r\n"
        assert await client.reader.readexactly(len(last)) == last
        client.send(NUMBERED_GET % 2)
        assert await client.head()
    async with serving(streams, tmp_path) as connect, connect() as client:
        client.send(b"GET / HTTP/1.0\r\n\r\n")
        head = await client.head()
        assert head.startswith(b"HTTP/1.0 200 OK\r\n") and b"chunked" not in head
        assert await client.rest() == b"one" + bytes(100_000)
    async with serving(streams, tmp_path) as connect, connect() as client:
        client.send(b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n" + NUMBERED_GET % 1)
        assert b"chunked" not in await client.head()
        assert (await client.head()).startswith(b"HTTP/1.1 200")


@on_both_loops
async def test_a_client_that_does_not_read_holds_its_stream_up(tmp_path: Path) -> None:
    if _NEVER_PAUSES and isinstance(asyncio.get_running_loop(), asyncio.SelectorEventLoop):
        pytest.skip("asyncio's own loop pauses nobody in this version of Python")
    written = 0

    async def streams(request: Request) -> Answer:
        nonlocal written
        response = StreamedResponse(request, b"")
        for _ in range(1000):
            await response.write(bytes(100_000))
            written += 1
        return response

    async with serving(streams, tmp_path) as connect, connect() as client:
        client.send(NUMBERED_GET % 1)
        await client.head()
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await until(lambda: written)
        before = -1
        while before != written:
            before = written
            await asyncio.sleep(0.05)
        assert written < 100
        client.writer.transport.resume_reading()  # type: ignore[attr-defined]
        while await client.reader.read(1 << 20) and written < 1000:
            pass
        assert written == 1000


@on_both_loops
async def test_a_coroutine_ends_with_its_client_and_a_task_goes_on(tmp_path: Path) -> None:
    begun = asyncio.Event()
    ends: list[str] = []
    gate = asyncio.Event()

    async def work(name: str) -> Answer:
        begun.set()
        try:
            await gate.wait()
            ends.append(f"{name} done")
        except asyncio.CancelledError:
            ends.append(f"{name} cancelled")
            raise
        return Response(200)

    def handler(request: Request) -> Coroutine[object, object, Answer] | asyncio.Task[Answer]:
        if request.raw_path == b"/1":
            return work("coroutine")
        return asyncio.get_running_loop().create_task(work("task"))

    async with serving(handler, tmp_path) as connect:
        for number in (1, 2):
            async with connect() as client:
                client.send(NUMBERED_GET % number)
                async with asyncio.timeout(5):
                    await begun.wait()
                begun.clear()
        await until(lambda: ends == ["coroutine cancelled"])
        gate.set()
        await until(lambda: ends == ["coroutine cancelled", "task done"])


@on_both_loops
async def test_a_handler_that_breaks_is_an_error_of_ours(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def broken(request: Request) -> Answer:
        raise ZeroDivisionError

    async with serving(broken, tmp_path) as connect, connect() as client:
        client.send(NUMBERED_GET % 1)
        assert (await client.answer())[0] == 500
        assert await client.closed()
    assert "ZeroDivisionError" in caplog.text


@on_both_loops
async def test_nothing_to_answer_closes_the_connection(tmp_path: Path) -> None:
    async with serving(lambda request: Unanswered(), tmp_path) as connect, connect() as client:
        client.send(NUMBERED_GET % 1)
        assert await client.closed()


@pytest.mark.parametrize(
    ("request_head", "line", "last"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"Connection: close", True),
        (b"GET / HTTP/1.0\r\n\r\n", b"HTTP/1.0 200", True),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", b"Connection: keep-alive", False),
    ],
)
async def test_who_asks_for_the_end_gets_it(tmp_path: Path, request_head: bytes, line: bytes, last: bool) -> None:
    async with serving(at_once, tmp_path) as connect, connect() as client:
        client.send(request_head)
        assert line in await client.head()
        assert await client.reader.readexactly(1) == b"/"
        if last:
            assert await client.closed()
        else:
            client.send(request_head)
            assert line in await client.head()


async def test_head_requests_and_empty_statuses_have_no_body(tmp_path: Path) -> None:
    def handler(request: Request) -> Answer:
        return Response(int(request.raw_path[1:]), b"body")

    async with serving(handler, tmp_path) as connect, connect() as client:
        client.send(
            b"HEAD /200 HTTP/1.1\r\nHost: x\r\n\r\n" + NUMBERED_GET % 204 + NUMBERED_GET % 304 + NUMBERED_GET % 201
        )
        assert b"Content-Length: 4\r\n" in await client.head()
        assert b"Content-Length" not in await client.head()
        assert b"Content-Length" not in await client.head()
        assert (await client.head()).startswith(b"HTTP/1.1 201 Created\r\n")
        assert await client.reader.readexactly(4) == b"body"


async def test_http_2_is_told_which_protocol_is_spoken(tmp_path: Path) -> None:
    async with serving(at_once, tmp_path) as connect, connect() as client:
        client.send(PREFACE)
        answer = await client.rest()
        assert answer == h2c.GO_AWAY
        assert answer[9:].endswith(b"this API is served over HTTP/1.1")


@on_both_loops
async def test_a_client_that_half_closes_and_reads_late_gets_all_its_answers(tmp_path: Path) -> None:
    def large(request: Request) -> Answer:
        return Response(200, request.raw_path * 1000)

    async with serving(large, tmp_path) as connect, connect() as client:
        client.send(b"".join(NUMBERED_GET % number for number in range(1000)))
        client.end()
        # It reads on when ours knows of its end.
        await asyncio.sleep(0.1)
        for number in range(1000):
            assert await client.answer() == (200, b"/%d" % number * 1000)
        assert await client.closed()


@on_both_loops
async def test_requests_that_came_together_let_others_have_their_turn(tmp_path: Path) -> None:
    served = 0

    def slow(request: Request) -> Answer:
        nonlocal served
        served += 1
        until = time.thread_time() + 0.001
        while time.thread_time() < until:
            pass
        return Response(200, request.raw_path)

    async with serving(slow, tmp_path) as connect, connect() as client, connect() as other:
        client.send(b"".join(NUMBERED_GET % number for number in range(400)))
        assert await client.answer() == (200, b"/0")
        other.send(NUMBERED_GET % 1)
        assert await other.answer() == (200, b"/1")
        assert served < 100
        client.end()
        assert [await client.answer() for _ in range(399)] == [(200, b"/%d" % number) for number in range(1, 400)]
