"""Execs at the edge: what is asked of the engine, what clients see, and where a failure shows."""

import asyncio
from pathlib import Path

import pytest
from aiohttp import ClientSession

from husk.api.streams.framing import MULTIPLEXED_STREAM, RAW_STREAM, frame
from husk.engine.containers.exec import CannotRun
from husk.engine.model.container_config import ExecConfig
from husk.errors import Conflict
from tests.unit.api.fake_engine import FakeAttachment, FakeEngine, container
from tests.unit.api.routes.test_console import Line, attached


@pytest.fixture
def made(engine: FakeEngine) -> str:
    """The id of an exec that is not yet started."""
    engine.containers.add(container("web"))
    return engine.execs.add(engine.containers.find("web").id, ExecConfig(cmd=["sh", "-c", "x"], detach_keys="ctrl-a"))


async def test_create_takes_gos_json_and_answers_the_id(client: ClientSession, engine: FakeEngine) -> None:
    body = {"cmd": "true", "AttachStdout": True, "Env": None, "ConsoleSize": [1, 2], "User": "me"}
    response = await client.post("/containers/web/exec", json=body)
    assert response.status == 201
    config = engine.execs.inspect((await response.json())["Id"]).config
    assert (config.cmd, config.attach_stdout, config.env, config.console_size, config.user) == (
        ["true"], True, [], [1, 2], "me",
    )  # fmt: skip


async def test_bad_detach_keys_are_refused_at_once(client: ClientSession) -> None:
    response = await client.post("/containers/web/exec", json={"Cmd": ["x"], "DetachKeys": "ctrl-?"})
    assert response.status == 400
    assert (await response.json())["message"] == "Invalid escape keys (ctrl-?) provided"


async def test_inspect(client: ClientSession, engine: FakeEngine, made: str) -> None:
    assert await (await client.get(f"/exec/{made}/json")).json() == {
        "ID": made,
        "Running": False,
        "ExitCode": None,
        "ProcessConfig": {"tty": False, "entrypoint": "sh", "arguments": ["-c", "x"], "privileged": False},
        "OpenStdin": False,
        "OpenStderr": False,
        "OpenStdout": False,
        "CanRemove": False,
        "ContainerID": engine.containers.find("web").id,
        "DetachKeys": "AQ==",
        "Pid": 0,
    }
    shown = await (await client.get("/containers/web/json")).json()
    assert shown["ExecIDs"] == [made]


async def test_detached(client: ClientSession, engine: FakeEngine, made: str) -> None:
    response = await client.post(f"/exec/{made}/start", json={"Detach": True})
    assert (response.status, await response.read()) == (200, b"")
    assert engine.calls == [("exec start", made, False, False, None)]


async def test_what_cannot_run_detached_is_an_answer(client: ClientSession, engine: FakeEngine, made: str) -> None:
    engine.recorder.failures["exec start"] = CannotRun("no such program")
    response = await client.post(f"/exec/{made}/start", json={"Detach": True})
    assert (response.status, (await response.json())["message"]) == (400, "no such program")


async def test_resize(client: ClientSession, engine: FakeEngine, made: str) -> None:
    assert (await client.post(f"/exec/{made}/resize?h=3&w=4")).status == 200
    assert (await client.post(f"/exec/{made}/resize?h=x&w=4")).status == 400
    assert engine.calls == [("exec resize", made, 3, 4)]


async def ask(line: Line, exec_id: str, body: bytes) -> bytes:
    head = f"POST /exec/{exec_id}/start HTTP/1.1\r\nHost: docker\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    line.writer.write(head.encode() + body)
    return await line.reader.readuntil(b"\r\n\r\n")


async def test_streams_are_framed_unless_the_client_reads_a_terminal(engine: FakeEngine, tmp_path: Path, made: str):
    for tty, kind, expected in ((False, MULTIPLEXED_STREAM, frame(1, b"hi")), (True, RAW_STREAM, b"hi")):
        engine.execs.attachment = attachment = FakeAttachment(tty)
        async with attached(engine, tmp_path) as line:
            head = await ask(line, made, b'{"Tty": %s, "ConsoleSize": [5, 6]}' % str(tty).lower().encode())
            assert head.startswith(b"HTTP/1.1 101 UPGRADED") and f"Content-Type: {kind}".encode() in head
            line.writer.write(b"hi")
            assert await line.reader.readexactly(len(expected)) == expected
            line.writer.write_eof()
            await line.reader.read()
            await attachment.was_closed.wait()
    assert [call[2:] for call in engine.calls] == [(True, False, None), (True, True, [5, 6])]


async def test_what_cannot_run_is_told_on_the_stream(engine: FakeEngine, tmp_path: Path, made: str) -> None:
    engine.recorder.failures["exec start"] = CannotRun("no such program")
    async with attached(engine, tmp_path) as line:
        assert (await ask(line, made, b"{}")).startswith(b"HTTP/1.1 101 UPGRADED")
        line.writer.write_eof()
        assert await asyncio.wait_for(line.frames(), 5) == [(1, b"no such program\r\n")]


async def test_a_conflict_is_an_answer_even_to_who_wants_to_attach(engine: FakeEngine, tmp_path: Path, made: str):
    engine.recorder.failures["exec start"] = Conflict("has already run")
    async with attached(engine, tmp_path) as line:
        assert (await ask(line, made, b"{}")).startswith(b"HTTP/1.1 409")
