"""A line tells who changed what, and with which result; reading leaves no line, and no secret is in any."""

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import aiohttp
import pytest

from husk.api.http.channel import Channel
from husk.api.http.limits import Limits
from husk.api.http.parser import HeadParser
from husk.api.http.request import Request
from husk.api.observed import ObservedEdge, Seen
from husk.api.server import serve
from husk.audit.lines import HIDDEN, AuditLog, line, who
from tests.unit.api.conftest import engine
from tests.unit.api.fake_engine import FakeEngine
from tests.unit.api.loops import until

if TYPE_CHECKING:
    from husk.engine.engine import Engine

__all__ = ["engine"]
SECRET = "hunter2"


class Asked:
    """A client of an edge that is audited, and the lines so far."""

    def __init__(self, client: aiohttp.ClientSession, lines: list[bytes]) -> None:
        self._client = client
        self._lines = lines

    async def tell(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        """The line that a request brings."""
        before = len(self._lines)
        await (await self._client.request(method, path, **more)).read()
        await until(lambda: len(self._lines) > before)
        (new,) = self._lines[before:]
        assert b"\n" not in new and SECRET.encode() not in new
        told: dict[str, Any] = json.loads(new)
        return told

    async def quiet(self, method: str, path: str) -> None:
        before = len(self._lines)
        await (await self._client.request(method, path)).read()
        await self.tell("POST", "/containers/clock/start")  # told later than the other would be
        assert len(self._lines) == before + 1


@pytest.fixture
async def asked(engine: FakeEngine, tmp_path: Path) -> AsyncIterator[Asked]:
    lines: list[bytes] = []
    edge = ObservedEdge(cast("Engine", engine), observers=(AuditLog(lines.append),))
    path = tmp_path / "socket"
    connector = aiohttp.UnixConnector(str(path))
    async with (
        serve(edge, [f"unix://{path}"], ""),
        aiohttp.ClientSession("http://docker", connector=connector) as client,
    ):
        yield Asked(client, lines)


async def test_a_change_is_told(asked: Asked) -> None:
    told = await asked.tell("POST", "/v1.41/containers/web/start?detachKeys=x", headers={"X-Request-Id": "mine"})
    assert told.pop("seconds") >= 0
    assert told.pop("time").endswith("Z")
    assert told == {
        "request_id": "mine",
        "who": {"uid": os.getuid(), "gid": os.getgid(), "pid": os.getpid()},
        "method": "POST",
        "route": "/containers/{id}/start",
        "path": "/v1.41/containers/web/start",
        "object": "web",
        "query": {"detachKeys": "x"},
        "status": 204,
    }


async def test_a_failure_is_told_with_its_reason(asked: Asked) -> None:
    told = await asked.tell("POST", "/nowhere")
    assert (told["route"], told["status"], told["error"]) == ("", 404, "page not found")


async def test_reading_is_not_told(asked: Asked) -> None:
    for method, path in (("GET", "/_ping"), ("HEAD", "/_ping"), ("GET", "/containers/json"), ("GET", "/nowhere")):
        await asked.quiet(method, path)


async def test_no_secret_is_told(asked: Asked) -> None:
    told = await asked.tell(
        "POST",
        f"/nowhere?name=web&buildargs={SECRET}&labels={SECRET}&remote=https://u:{SECRET}@x&made-up={SECRET}",
        data=json.dumps({"Env": [f"PASSWORD={SECRET}"]}),
        headers={"X-Registry-Auth": SECRET, "X-Registry-Config": SECRET, "Authorization": SECRET},
    )
    assert told["object"] == told["query"].pop("name") == "web"
    assert set(told["query"].values()) == {HIDDEN}


def request(method: bytes, target: bytes, headers: bytes = b"") -> Request:
    head = HeadParser(Limits()).feed(method + b" " + target + b" HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n")
    assert head is not None
    return Request(head, Channel())


def test_a_terminal_by_websocket_is_a_change() -> None:
    lines: list[bytes] = []
    log = AuditLog(lines.append)
    for route in ("/containers/{id}/attach/ws", "/containers/{id}/logs"):
        seen = Seen(request(b"GET", b"/"), route, "web")
        log.begun(seen)
        log.done(seen)
    assert [json.loads(line)["route"] for line in lines] == ["/containers/{id}/attach/ws"]


def test_what_is_long_or_no_text_stays_one_readable_line() -> None:
    seen = Seen(request(b"POST", b"/x%0a" + b"y" * 5000 + b"?name=%0A%FF"), "", "")
    told = json.loads(line(seen, {}, 0.0))
    assert told["time"] == "1970-01-01T00:00:00.000000Z"
    assert len(told["path"]) == 1024
    assert told["query"] == {"name": "\n\ufffd"}


def test_who_is_behind_a_socket_of_our_own() -> None:
    visited = request(b"POST", b"/", b"X-Husk-Visitor: 10.0.0.9 session 1a2b\r\n")
    visited.connection.behind = {"address": "10.0.0.8", "certificate": "CN=deploy"}
    assert who(visited) == {"address": "10.0.0.8", "certificate": "CN=deploy"}
    visited.connection.behind = {"dashboard": "itself"}
    assert who(visited) == {"dashboard": "10.0.0.9 session 1a2b"}
    assert who(request(b"POST", b"/", b"X-Husk-Visitor: made up\r\n")) == {"address": "unknown"}
