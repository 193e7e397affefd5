"""From HTTP/1.1 to HTTP/2: the upgrade gives a stream of bytes, and HTTP/2 without it is told what is spoken."""

from pathlib import Path

import pytest

from husk.api.http import h2c
from husk.api.http.parser import PREFACE
from husk.api.http.request import Request
from husk.api.http.response import Answer, Response, Unanswered, fields
from tests.unit.api.http.conftest import serving
from tests.unit.api.http.test_hijack import PLAIN, UPGRADE, shout
from tests.unit.api.loops import on_both_loops

SESSION = b"POST /session HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"


async def session(request: Request) -> Answer:
    if not h2c.asked_for(request):
        return Response(400, b"no h2c")
    await shout(h2c.upgrade(request, fields({"X": "y"})))
    return Unanswered()


@on_both_loops
async def test_after_the_answer_to_an_upgrade_to_h2c_bytes_are_bytes(tmp_path: Path) -> None:
    async with serving(session, tmp_path) as connect:
        async with connect() as client:
            client.send(SESSION + b"pri * http/2.0\r\n\r\n")
            client.end()
            head = await client.head()
            assert head.startswith(
                b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nX: y\r\n"
            )
            assert await client.rest() == b"PRI * HTTP/2.0\r\n\r\n!"
        async with connect() as client:
            client.send(SESSION.replace(b"Connection: Upgrade\r\n", b""))
            client.end()
            assert (await client.head()).startswith(b"HTTP/1.1 101 ")
        for head in (PLAIN, UPGRADE, SESSION.replace(b"Upgrade: h2c\r\n", b"")):
            async with connect() as client:
                client.send(head)
                assert await client.answer() == (400, b"no h2c")


@pytest.mark.parametrize("cut", [1, 10, 18, 20, 24])
@on_both_loops
async def test_http_2_from_the_first_byte_is_given_to_who_takes_it(tmp_path: Path, cut: int) -> None:
    async def take(request: Request) -> Answer:
        await shout(h2c.begin(request))
        return Unanswered()

    async with serving(session, tmp_path, http2=take) as connect, connect() as client:
        client.send(PREFACE[:cut])
        await client.writer.drain()
        client.send(PREFACE[cut:] + b"more")
        client.end()
        assert await client.rest() == (PREFACE + b"more!").upper()


def test_the_answer_to_http_2_is_two_frames_of_it() -> None:
    frames, data = [], h2c.GO_AWAY
    while data:
        size = int.from_bytes(data[:3], "big")
        frames.append((data[3], data[9 : 9 + size]))
        data = data[9 + size :]
    assert [kind for kind, _ in frames] == [4, 7]
    assert frames[1][1][:8] == bytes(7) + b"\x0d"
