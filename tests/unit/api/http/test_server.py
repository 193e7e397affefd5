"""The end of a server: what is under way gets its time, the rest goes at once."""

import asyncio
from pathlib import Path

from husk.api.http.errors import BadRequest
from husk.api.http.request import Request
from husk.api.http.response import Answer, Response
from husk.api.http.server import Server, plain_refusal
from tests.unit.api.loops import on_both_loops

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
