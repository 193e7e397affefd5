"""A body that somebody else sends into the client's socket."""

import os
from pathlib import Path

from husk.api.http.download import all_sent, lent_socket
from husk.api.http.request import Request
from husk.api.http.response import Answer, Response, StreamedResponse
from tests.unit.api.http.conftest import serving
from tests.unit.api.loops import on_both_loops

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def handler(request: Request) -> Answer:
    with lent_socket(request) as descriptor:
        if descriptor is None:
            return Response(200, b"by us")
        response = StreamedResponse(request, b"")
        await all_sent(request)
        os.write(descriptor, b"6\r\nworker\r\n")
        await response.write_eof()
        return response


@on_both_loops
async def test_on_a_unix_socket_it_is_lent_between_head_and_end(tmp_path: Path) -> None:
    async with serving(handler, tmp_path) as connect, connect() as client:
        for _ in range(2):
            client.send(GET)
            assert b"chunked" in await client.head()
            assert await client.reader.readuntil(b"0\r\n\r\n") == b"6\r\nworker\r\n0\r\n\r\n"


async def test_otherwise_it_is_not(tmp_path: Path) -> None:
    async with serving(handler, tmp_path, tcp=True) as connect, connect() as client:
        client.send(GET)
        assert await client.answer() == (200, b"by us")
    async with serving(handler, tmp_path) as connect, connect() as client:
        client.send(b"GET / HTTP/1.0\r\n\r\n")
        assert (await client.rest()).endswith(b"by us")
