import asyncio
import gc
import socket

import pytest

from husk.client.background import Background
from husk.client.http import Connection
from husk.errors import Unavailable


async def connected(answer: bytes, step: int = 1 << 20):
    """A connection to somebody who says just that, whatever is asked, in pieces of so many bytes."""
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_unix_connection(sock=theirs)

    async def say():
        await reader.readuntil(b"\r\n\r\n")
        for start in range(0, len(answer), step):
            writer.write(answer[start : start + step])
            await writer.drain()
            await asyncio.sleep(0)
        writer.write_eof()

    saying = asyncio.get_running_loop().create_task(say())
    return Connection(*await asyncio.open_unix_connection(sock=ours)), saying, writer


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: b\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
LENGTH = b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nabcde"
CLOSED = b"HTTP/1.0 200 OK\r\n\r\nabcde"
CONTINUED = b"HTTP/1.1 100 Continue\r\n\r\n" + LENGTH


@pytest.mark.parametrize("answer", [CHUNKED, LENGTH, CLOSED, CONTINUED])
@pytest.mark.parametrize("step", [1, 2, 7, 1000])
async def test_answers_cut_anywhere(answer, step):
    connection, saying, writer = await connected(answer, step)
    response = await connection.request("GET", "/", {}, b"")
    assert await response.read() == b"abcde"
    assert response.status == (404 if answer.endswith(LENGTH) else 200)
    await saying
    connection.close()
    writer.close()


@pytest.mark.parametrize("answer", [CHUNKED[:-9], LENGTH[:-1]])
async def test_an_answer_that_breaks_off(answer):
    connection, saying, writer = await connected(answer)
    response = await connection.request("GET", "/", {}, b"")
    with pytest.raises(Unavailable, match="in the middle of an answer"):
        await response.read()
    await saying
    writer.close()


async def test_what_is_no_http():
    connection, saying, writer = await connected(b"SSH-2.0-OpenSSH\r\n")
    with pytest.raises(Unavailable, match="not HTTP"):
        await connection.request("GET", "/", {}, b"")
    await saying
    writer.close()


async def test_no_answer_at_all():
    connection, saying, writer = await connected(b"")
    with pytest.raises(ConnectionResetError, match="without an answer"):
        await connection.request("GET", "/", {}, b"")
    await saying
    writer.close()


async def test_a_head_alone():
    connection, saying, writer = await connected(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\nX-A: b\r\n\r\n")
    response = await connection.request("HEAD", "/", {}, b"")
    assert (response.headers["x-a"], await response.read(), response.reusable) == ("b", b"", False)
    await saying
    connection.close()
    writer.close()


async def test_a_body_in_pieces():
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_unix_connection(sock=theirs)
    connection = Connection(*await asyncio.open_unix_connection(sock=ours))

    async def body():
        yield b"abc"
        yield b""
        yield b"de"

    async def answer():
        sent = await reader.readuntil(b"0\r\n\r\n")
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        return sent

    answering = asyncio.get_running_loop().create_task(answer())
    response = await connection.request("PUT", "/x", {"A": "b"}, body(), Background().send)
    head, _, sent = (await answering).partition(b"\r\n\r\n")
    assert head.splitlines() == [b"PUT /x HTTP/1.1", b"Host: husk", b"A: b", b"Transfer-Encoding: chunked"]
    assert sent == b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    assert (await response.read(), response.reusable) == (b"", True)
    connection.close()
    writer.close()


async def test_a_body_that_fails_after_the_answer_is_nobodys_fault(caplog):
    gc.collect()  # what other tests have left complains now
    caplog.clear()
    connection, saying, writer = await connected(LENGTH)
    answered = asyncio.Event()

    async def body():
        yield b"begun"
        await answered.wait()
        raise ValueError("whoever sent it has gone")

    response = await connection.request("PUT", "/x", {}, body(), Background().send)
    assert await response.read() == b"abcde"
    answered.set()
    await asyncio.wait([response.body_sent])
    response.body_sent = None
    gc.collect()
    assert caplog.records == []
    await saying
    writer.close()
