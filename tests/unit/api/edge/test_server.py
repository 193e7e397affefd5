"""The edge as a whole: headers on everything, errors in one form, changes that outlive their client."""

import asyncio
import os
import socket
import stat
from pathlib import Path
from typing import TYPE_CHECKING, cast

import aiohttp
import pytest
from aiohttp import ClientSession
from msgspec.structs import replace
from yarl import URL

from husk import errors
from husk.aio.tasks import Tasks
from husk.api.edge.server import ApiEdge, serve
from husk.api.http.limits import HttpLimits
from tests.unit.api.fake_engine import FakeEngine, container
from tests.unit.api.http.test_bodies import BAD
from tests.unit.api.loops import on_both_loops, until

if TYPE_CHECKING:
    from husk.composition import Engine


async def test_ping_answers_as_dockerd_does(client: ClientSession) -> None:
    response = await client.get("/_ping")
    assert (response.status, await response.text()) == (200, "OK")
    expected = {
        "Api-Version": "1.55",
        "Builder-Version": "2",
        "Cache-Control": "no-cache, no-store, must-revalidate",
        "Content-Type": "text/plain; charset=utf-8",
        "Docker-Experimental": "false",
        "Ostype": "linux",
        "Pragma": "no-cache",
        "Server": "Husk/1.2.3 (linux)",
        "Swarm": "inactive",
    }
    assert {name: response.headers.get(name) for name in expected} == expected
    head = await client.head("/v1.41/_ping")
    assert (head.status, await head.read()) == (200, b"")
    assert {name: head.headers.get(name) for name in expected} == expected


@pytest.mark.parametrize(("features", "version"), [({"buildkit": False}, "1"), ({"buildkit": True, "x": False}, "2")])
async def test_ping_tells_which_builder_clients_shall_take(
    client: ClientSession, engine: FakeEngine, features: dict[str, bool], version: str
) -> None:
    engine.config = replace(engine.config, features=features)
    for method in ("GET", "HEAD"):
        assert (await client.request(method, "/_ping")).headers["Builder-Version"] == version


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        ("GET", "/nowhere", 404, "page not found"),
        ("GET", "/v1.41/nowhere", 404, "page not found"),
        ("GET", "/vfoo/info", 404, "page not found"),
        ("POST", "/_ping", 404, "page not found"),
        ("GET", "/v1.99/info", 400, "client version 1.99 is too new. Maximum supported API version is 1.55"),
        (
            "GET",
            "/v1.2/info",
            400,
            "client version 1.2 is too old. Minimum supported API version is 1.24, "
            "please upgrade your client to a newer version",
        ),
        ("GET", "/containers/nope/json", 404, "No such container: nope"),
        ("GET", "/images/a/b:c/json", 404, "No such image: a/b:c"),
        ("GET", "/images/a%2Fb:c/json", 404, "No such image: a/b:c"),
        ("POST", "/plugins/create", 501, "POST /plugins/create is not implemented by Husk yet"),
        ("GET", "/containers/json?limit=x", 400, "invalid value 'x' for limit: not a number"),
        ("GET", "/containers/json?filters=x", 400, None),
        ("GET", "/containers/json?filters=%ED%A0%80", 400, "invalid query parameter 'filters': its value is not UTF-8"),
        ("GET", "/containers/json?limit=%FF", 400, "invalid query parameter 'limit': its value is not UTF-8"),
        ("POST", "/containers/web/attach?detachKeys=%FF", 400, None),
        ("POST", "/containers/%ED%A0%80/attach", 400, "invalid path: it is not UTF-8"),
        ("POST", "/exec/a%FFb/start", 400, "invalid path: it is not UTF-8"),
        ("GET", "/%ED%A0%80//x", 400, "invalid path: it is not UTF-8"),
        ("GET", "/containers/json?filters=%7B%22a%22%3A%5B%5D%7D", 400, "invalid filter 'a'"),
    ],
)
async def test_errors_have_a_status_a_message_and_all_headers(
    client: ClientSession, method: str, path: str, status: int, message: str | None
) -> None:
    response = await client.request(method, URL(path, encoded=True))
    assert response.status == status
    assert response.content_type == "application/json"
    assert response.headers["Api-Version"] == "1.55"
    assert response.headers["Ostype"] == "linux"
    body = await response.json()
    assert list(body) == ["message"]
    assert message is None or body["message"] == message


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.InvalidParameter("x"), 400),
        (errors.Unauthorized("x"), 401),
        (errors.Forbidden("x"), 403),
        (errors.NotFound("x"), 404),
        (errors.Conflict("x"), 409),
        (errors.SystemFault("x"), 500),
        (errors.NotImplementedYet("x"), 501),
        (errors.Unavailable("x"), 503),
    ],
)
async def test_each_kind_of_error_has_its_status(
    client: ClientSession, engine: FakeEngine, error: Exception, status: int
) -> None:
    engine.recorder.failures["start"] = error
    response = await client.post("/containers/web/start")
    assert (response.status, await response.json()) == (status, {"message": "x"})


async def test_nothing_to_do_is_not_modified(client: ClientSession, engine: FakeEngine) -> None:
    engine.recorder.failures["start"] = errors.NotModified("already started")
    response = await client.post("/containers/web/start")
    assert (response.status, await response.read()) == (304, b"")


async def test_an_unexpected_error_is_logged_and_told(
    client: ClientSession, engine: FakeEngine, caplog: pytest.LogCaptureFixture
) -> None:
    engine.recorder.failures["start"] = ZeroDivisionError("by zero")
    response = await client.post("/containers/web/start")
    assert (response.status, (await response.json())["message"]) == (500, "internal error: ZeroDivisionError: by zero")
    assert "Traceback" in caplog.text


@pytest.mark.parametrize(
    "host", ["docker", "%2Fvar%2Frun%2Fdocker.sock", "/var/run/docker.sock", "api.moby.localhost", ""]
)
async def test_any_host_header_will_do(client: ClientSession, host: str) -> None:
    assert (await client.get("/v1.41/_ping", headers={"Host": host})).status == 200


async def test_a_change_goes_on_when_its_client_leaves(client: ClientSession, engine: FakeEngine) -> None:
    gate = engine.recorder.gates["start"] = asyncio.Event()
    with pytest.raises(asyncio.TimeoutError):
        await client.post("/containers/web/start", timeout=aiohttp.ClientTimeout(total=0.05))
    gate.set()
    await until(lambda: engine.calls)
    assert engine.calls == [("start", "web")]


async def test_a_stream_ends_when_its_client_leaves(client: ClientSession, engine: FakeEngine) -> None:
    response = await client.get("/events")
    assert engine.events.listeners == 1
    response.close()
    await until(lambda: not engine.events.listeners)


# where it listens


async def ask(path: Path) -> int:
    connector = aiohttp.UnixConnector(str(path))
    async with aiohttp.ClientSession(connector=connector) as session, session.get("http://any/_ping") as response:
        return response.status


def app(engine: FakeEngine) -> ApiEdge:
    return ApiEdge(cast("Engine", engine))


async def test_it_listens_for_root_and_the_group_and_leaves_nothing(engine: FakeEngine, tmp_path: Path) -> None:
    path = tmp_path / "run" / "husk.sock"
    async with serve(app(engine), [f"unix://{path}", "tcp://127.0.0.1:0"], group=str(os.getgid())) as addresses:
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        assert await ask(path) == 200
        assert addresses[0] == f"unix://{path}"
        async with aiohttp.ClientSession() as session:
            assert (await session.get(addresses[1].replace("tcp", "http") + "/_ping")).status == 200
    assert not path.exists()


SMUGGLED = {
    **BAD,
    "an extension without an end": b"5;" + b"a" * 5000,
    "trailers without an end": b"0\r\n" + b"A: b\r\n" * 9999,
}


@pytest.mark.parametrize("body", SMUGGLED.values(), ids=SMUGGLED.keys())
async def test_a_body_that_could_be_read_in_two_ways_gets_400_and_the_connection_ends(
    engine: FakeEngine, tmp_path: Path, body: bytes
) -> None:
    path = tmp_path / "husk.sock"
    async with asyncio.timeout(20), serve(app(engine), [f"unix://{path}"], group=""):
        reader, writer = await asyncio.open_unix_connection(str(path))
        head = b"POST /containers/create HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        writer.write(head + b"Transfer-Encoding: chunked\r\n\r\n" + body + b"GET /_ping HTTP/1.1\r\nHost: x\r\n\r\n")
        writer.write_eof()
        answer = await reader.read()
        writer.close()
    assert answer.startswith(b"HTTP/1.1 400 ") and answer.count(b"HTTP/1.1 ") == 1
    assert engine.calls == []


async def test_a_document_that_is_too_large_gets_413_and_the_connection_ends(
    engine: FakeEngine, tmp_path: Path
) -> None:
    path = tmp_path / "husk.sock"
    async with asyncio.timeout(20), serve(app(engine), [f"unix://{path}"], group=""):
        reader, writer = await asyncio.open_unix_connection(str(path))
        size = HttpLimits().document_size + 1
        head = b"POST /containers/create HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        writer.write(head + b"Content-Length: %d\r\n\r\n{" % size)
        answer = await reader.read()
        writer.close()
    assert answer.startswith(b"HTTP/1.1 413 ") and b"Connection: close\r\n" in answer
    assert engine.calls == []


@on_both_loops
async def test_a_client_that_half_closes_gets_its_answer(engine: FakeEngine, tmp_path: Path) -> None:
    path = tmp_path / "husk.sock"
    async with asyncio.timeout(5), serve(app(engine), [f"unix://{path}"], group=""):
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(b"GET /_ping HTTP/1.1\r\nHost: x\r\n\r\n")
        writer.write_eof()
        assert (await reader.read()).endswith(b"\r\n\r\nOK")
        writer.close()


@on_both_loops
async def test_a_client_that_half_closed_can_still_leave(engine: FakeEngine, tmp_path: Path) -> None:
    path = tmp_path / "husk.sock"
    async with asyncio.timeout(5), serve(app(engine), [f"unix://{path}"], group=""):
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
        writer.write_eof()
        await reader.readuntil(b"\r\n\r\n")
        assert engine.events.listeners == 1
        writer.close()
        await until(lambda: not engine.events.listeners)


async def test_the_socket_of_a_dead_daemon_is_replaced(engine: FakeEngine, tmp_path: Path) -> None:
    path = tmp_path / "husk.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    async with serve(app(engine), [f"unix://{path}"], group=""):
        assert await ask(path) == 200


async def test_the_socket_of_a_living_daemon_is_respected(engine: FakeEngine, tmp_path: Path) -> None:
    path = tmp_path / "husk.sock"
    async with serve(app(engine), [f"unix://{path}"], group=""):
        with pytest.raises(errors.SystemFault, match="another daemon is listening there"):
            async with serve(app(engine), [f"unix://{path}"], group=""):
                pass
        assert await ask(path) == 200


async def test_a_file_in_the_way_stays(engine: FakeEngine, tmp_path: Path) -> None:
    path = tmp_path / "husk.sock"
    path.write_text("precious")
    with pytest.raises(errors.SystemFault, match="is no socket"):
        async with serve(app(engine), [f"unix://{path}"], group=""):
            pass
    assert path.read_text() == "precious"


@pytest.mark.parametrize(
    "host", ["husk.sock", "unix://husk.sock", "http://x:1", "tcp://127.0.0.1", "tcp://127.0.0.1:x"]
)
async def test_a_host_that_makes_no_sense_is_refused(engine: FakeEngine, host: str) -> None:
    with pytest.raises(errors.InvalidParameter, match="invalid host"):
        async with serve(app(engine), [host], group=""):
            pass


async def test_shutting_down_ends_streams_at_once(engine: FakeEngine, tmp_path: Path) -> None:
    path = tmp_path / "husk.sock"
    engine.containers.add(container("web"))
    async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path))) as session:
        async with asyncio.timeout(5):
            async with serve(app(engine), [f"unix://{path}"], group=""):
                waiting = await session.post("http://any/containers/web/wait")
                assert waiting.status == 200
        with pytest.raises(aiohttp.ClientPayloadError):
            await waiting.read()


async def start(session: aiohttp.ClientSession) -> int:
    async with session.post("http://any/containers/web/start") as response:
        return response.status


async def test_shutting_down_waits_for_changes_as_long_as_the_settings_say(engine: FakeEngine, tmp_path: Path) -> None:
    path = tmp_path / "husk.sock"
    engine.containers.add(container("web"))
    engine.config = replace(engine.config, shutdown_timeout=0.05)
    engine.recorder.gates["start"] = asyncio.Event()  # nobody opens it
    async with asyncio.timeout(20):
        async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path))) as session:
            async with serve(app(engine), [f"unix://{path}"], group=""):
                starting = Tasks().spawn(start(session), "start", awaited=True)
                await until(lambda: engine.recorder.waiting)
            with pytest.raises(aiohttp.ClientError):
                await starting


async def test_shutting_down_may_wait_for_ever(engine: FakeEngine, tmp_path: Path) -> None:
    path = tmp_path / "husk.sock"
    engine.containers.add(container("web"))
    engine.config = replace(engine.config, shutdown_timeout=None)
    gate = engine.recorder.gates["start"] = asyncio.Event()
    async with asyncio.timeout(20):
        async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path))) as session:
            async with serve(app(engine), [f"unix://{path}"], group=""):
                starting = Tasks().spawn(start(session), "start", awaited=True)
                await until(lambda: engine.recorder.waiting)
                asyncio.get_running_loop().call_later(0.1, gate.set)
            assert engine.calls == [("start", "web")]
            assert await starting == 204


async def test_what_a_request_needs_is_loaded_before_it_is_answered(engine: FakeEngine) -> None:
    loaded: list[str] = []

    async def noting(*modules: str) -> None:
        loaded.extend(modules)

    async with (
        serve(ApiEdge(cast("Engine", engine), load=noting), ["tcp://127.0.0.1:0"], group="") as (address,),
        ClientSession(address.replace("tcp", "http", 1)) as session,
    ):
        for path in ("/v1.41/volumes", "/volumes", "/volumes?x=/info", "/nowhere", "/", "/v1.41"):
            await session.get(path)
        assert loaded == ["husk.api.routes.volumes"]
        loaded.clear()
        await session.get("/v1.41/nodes")
    assert loaded == ["husk.api.routes.swarm", "husk.swarm.opening"]
