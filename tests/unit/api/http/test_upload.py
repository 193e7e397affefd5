"""A body that is taken as a whole, or handed to somebody who reads the socket."""

import asyncio
import os
import socket
from pathlib import Path

import pytest

from husk.aio.tasks import Tasks
from husk.api.http.errors import BodyTooLarge
from husk.api.http.request import Request
from husk.api.http.response import Answer, Response
from tests.unit.api.http.conftest import serving
from tests.unit.api.loops import on_both_loops

LENGTH = b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n"
CHUNKS = b"PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@on_both_loops
async def test_a_body_is_handed_over_with_what_had_come_of_it(tmp_path: Path) -> None:
    async def handed(request: Request) -> Answer:
        assert request.body is not None
        with request.body.handed_over() as (descriptor, begun, length):
            assert length == 10
            os.set_blocking(descriptor, True)
            with socket.socket(fileno=os.dup(descriptor)) as reader:
                rest = await asyncio.to_thread(reader.recv, 10 - len(begun), socket.MSG_WAITALL)
            os.set_blocking(descriptor, False)
        request.body.consumed()
        return Response(200, begun + rest)

    async with serving(handed, tmp_path) as connect, connect() as client:
        client.send(b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n01234")
        await asyncio.sleep(0.05)
        client.send(b"56789")
        head = await client.head()
        assert b"Connection: close\r\n" in head
        assert await client.rest() == b"0123456789"


@on_both_loops
async def test_a_client_that_still_sends_reads_the_answer_to_what_was_handed_over(tmp_path: Path) -> None:
    async def refuses(request: Request) -> Answer:
        assert request.body is not None
        with request.body.handed_over():
            pass
        return Response(409, b"no")

    async with serving(refuses, tmp_path) as connect, connect() as client:
        client.send(b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000\r\n\r\n" + bytes(4_000_000))
        assert (await client.head()).startswith(b"HTTP/1.1 409 ")
        assert await client.rest() == b"no"


@pytest.mark.parametrize("data", [LENGTH + b"hello", CHUNKS + b"5\r\nhello\r\n0\r\n\r\n"])
async def test_a_document_has_a_largest_size(tmp_path: Path, data: bytes) -> None:
    async def documents(request: Request) -> Answer:
        assert request.body is not None
        try:
            return Response(200, await request.body.document(4))
        except BodyTooLarge:
            return Response(413)

    async with serving(documents, tmp_path) as connect, connect() as client:
        client.send(data)
        assert (await client.head()).startswith(b"HTTP/1.1 413 ")
        assert await client.closed()


@on_both_loops
async def test_others_have_their_turn_while_many_small_chunks_are_read(tmp_path: Path) -> None:
    turns = 0

    async def documents(request: Request) -> Answer:
        nonlocal turns
        turns += 1
        assert request.body is not None
        return Response(200, await request.body.document(1 << 20))

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async with serving(documents, tmp_path) as connect, connect() as client:
        tasks = Tasks()
        tasks.spawn(count(), "count turns")
        client.send(CHUNKS + b"1\r\nx\r\n" * 100_000 + b"0\r\n\r\n")
        await client.writer.drain()
        assert await client.answer() == (200, b"x" * 100_000)
        await tasks.cancel_all()
        assert turns > 100_000 // 2048


async def test_a_body_of_many_chunks_that_nobody_reads_ends_the_connection(tmp_path: Path) -> None:
    def nobody(request: Request) -> Answer:
        return Response(200, b"answer")

    async with serving(nobody, tmp_path) as connect, connect() as client:
        client.send(CHUNKS + b"1\r\nx\r\n" * 5000 + b"0\r\n\r\n")
        assert await client.answer() == (200, b"answer")
        assert await client.closed()
