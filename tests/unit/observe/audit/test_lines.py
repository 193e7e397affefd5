"""A line tells who changed what, and with which result; reading leaves no line, and no secret is in any."""

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

import aiohttp
import pytest

from husk.api.edge.observed import ObservedEdge, SeenRequest
from husk.api.edge.server import serve
from husk.api.http.channel import Channel
from husk.api.http.limits import HttpLimits
from husk.api.http.parser import HeadParser
from husk.api.http.request import Request
from husk.engine.model.container_config import ExecConfig
from husk.observe.audit.lines import HIDDEN, AuditLog, in_ascii, line, who
from tests.unit.api.conftest import engine
from tests.unit.api.fake_engine import FakeEngine
from tests.unit.api.loops import until

if TYPE_CHECKING:
    from husk.composition import Engine

__all__ = ["engine"]
SECRET = "hunter2"
# More networks than clients of an older API may give: that is refused after the body was read.
MANY: dict[str, object] = {"EndpointsConfig": {"a": {}, "b": {}}}


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
    head = HeadParser(HttpLimits()).feed(method + b" " + target + b" HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n")
    assert head is not None
    return Request(head, Channel())


def test_a_terminal_by_websocket_is_a_change() -> None:
    lines: list[bytes] = []
    log = AuditLog(lines.append)
    for route in ("/containers/{id}/attach/ws", "/containers/{id}/logs"):
        seen = SeenRequest(request(b"GET", b"/"), route, "web")
        log.begun(seen)
        log.done(seen)
    assert [json.loads(line)["route"] for line in lines] == ["/containers/{id}/attach/ws"]


def test_the_value_that_counts_is_told() -> None:
    target = b"/x?name=first&name=last&t=a&t=b&force=0&force=1&path=%2Fa%0A%FF&names=one"
    told = json.loads(line(SeenRequest(request(b"POST", target), "", ""), {}, 0.0))
    assert told["time"] == "1970-01-01T00:00:00.000000Z"
    assert told["query"] == {"name": "first", "t": ["a", "b"], "force": "0", "path": "/a\n?", "names": "one"}
    assert told["object"] == "first"


def test_dummies_hide_nothing() -> None:
    dummies = b"&".join(b"d%d=x" % number for number in range(5000))
    name = b"n" * 5000
    told = json.loads(
        line(SeenRequest(request(b"POST", b"/x?" + dummies + b"&name=" + name + b"&force=1"), "", ""), {}, 0.0)
    )
    assert (told["object"], told["query"]["name"], told["query"]["force"]) == (name.decode(), name.decode(), "1")
    assert (len(told["query"]), told["query"]["d0"], told["query_left_out"]) == (66, HIDDEN, 5000 - 64)


def test_a_line_is_printable_and_one_whatever_names_hold() -> None:
    names = "a\n\r\x1b[2J\x7f\x85\x9b2J\u2028\u2029\u202e\u200b\U000e0001\0é"
    target = f"/x?name={quote(names)}&{quote(names)}=1&path=%ED%A0%80".encode()
    seen = SeenRequest(request(b"POST", target), "", names)
    seen.request.fault = names + "\udcff"
    seen.request.meant = ExecConfig(user=names)
    data = line(seen, {"certificate": names}, 0.0)
    assert data.decode("ascii").isprintable()
    told = json.loads(data)
    assert told["object"] == told["who"]["certificate"] == told["query"]["name"] == told["asked"]["User"] == names
    assert told["error"] == names + "?"


async def test_what_a_body_means_is_told(asked: Asked) -> None:
    body = {"Image": "busybox", "Env": [f"P={SECRET}"], "HostConfig": {"Privileged": True, "Binds": ["/:/host"]}}
    told = await asked.tell("POST", "/containers/create?name=web&name=x", json=body)
    assert told["object"] == told["query"]["name"] == "web"
    assert told["asked"]["Privileged"] is True and told["asked"]["Id"]
    refused = {**body, "HostConfig": {**body["HostConfig"], "privileged": False, "Nonsense": 1}}  # type: ignore[dict-item]
    told = await asked.tell("POST", "/v1.43/containers/create", json=refused | {"NetworkingConfig": MANY})
    assert (told["status"], told["asked"]) == (400, {"Image": "busybox", "Binds": ["/:/host"]})
    exec = {"Cmd": [SECRET], "Privileged": True, "AttachStdout": True}
    told = await asked.tell("POST", "/containers/web/exec", json=exec)
    assert told["asked"] == {"Id": told["asked"]["Id"], "Container": "web", "Privileged": True}
    started = await asked.tell("POST", f"/exec/{told['asked']['Id']}/start", json={"Detach": True})
    assert started["asked"] == told["asked"]


def test_who_is_behind_a_socket_of_our_own() -> None:
    visited = request(b"POST", b"/", b"X-Husk-Visitor: 10.0.0.9 session 1a2b\r\n")
    visited.connection.behind = {"address": "10.0.0.8", "certificate": "CN=deploy"}
    assert who(visited) == {"address": "10.0.0.8", "certificate": "CN=deploy"}
    visited.connection.behind = {"dashboard": "itself"}
    assert who(visited) == {"dashboard": "10.0.0.9 session 1a2b"}
    assert who(request(b"POST", b"/", b"X-Husk-Visitor: made up\r\n")) == {"address": "unknown"}


def test_of_a_load_all_platforms_count() -> None:
    both = b"/images/load?platform=one&platform=two&t=a&t=b"
    for route, platform in (("/images/load", ["one", "two"]), ("/build", "one")):
        told = json.loads(line(SeenRequest(request(b"POST", both), route, ""), {}, 0))
        assert told["query"] == {"platform": platform, "t": ["a", "b"]}


def test_a_line_is_visible_letters_of_ascii_alone() -> None:
    told: dict[str, object] = {"a": 'ä\u2028\x7f\x1b"\\\n€🦀', "b": [1, 0.5, None, {"c": True}]}
    assert json.loads(in_ascii(told)) == told
    assert all(0x20 <= sign < 0x7F for sign in in_ascii(told))
    assert in_ascii({"plain": "x"}) == b'{"plain":"x"}'
