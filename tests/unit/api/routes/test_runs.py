"""Running a container in one call: what the engine is asked for it, and what the answer tells."""

import asyncio
from base64 import b64encode
from typing import Any

import msgspec
import pytest
from aiohttp import ClientSession

from husk.api.streams.framing import frame
from husk.engine.containers.index import Exit
from husk.errors import Conflict
from tests.unit.api.fake_engine import FakeAttachment, FakeEngine
from tests.unit.api.loops import until


def wanted(**more: object) -> dict[str, Any]:
    return {"Image": "busybox", "OpenStdin": True, "HostConfig": {"AutoRemove": True}, **more}


@pytest.fixture
def attachment(engine: FakeEngine) -> FakeAttachment:
    engine.containers.attachment = FakeAttachment(tty=False)
    return engine.containers.attachment


async def ended(engine: FakeEngine, exit: Exit) -> None:
    await until(lambda: bool(engine.containers.exits))
    [future] = engine.containers.exits.values()
    future.set_result(exit)


async def test_output_is_followed_by_the_end(
    client: ClientSession, engine: FakeEngine, attachment: FakeAttachment
) -> None:
    async with client.post("/containers/run?name=a", json=wanted(Input=b64encode(b"hi").decode())) as response:
        assert response.status == 200
        box = engine.containers.find("a")
        assert response.headers["X-Husk-Container"] == box.id
        await ended(engine, Exit(137, oom_killed=True))
        body = await response.read()
    assert body == frame(1, b"hi") + frame(2, b"bye") + frame(3, b'{"StatusCode":137,"OOMKilled":true}')
    assert engine.calls == [("create", "a"), ("start", box.id)]
    await until(attachment.was_closed.is_set)


async def test_one_that_does_not_start_is_removed_and_told(
    client: ClientSession, engine: FakeEngine, attachment: FakeAttachment
) -> None:
    engine.recorder.failures["start"] = Conflict("port is taken")
    response = await client.post("/containers/run?name=a", json=wanted())
    box = engine.containers.find("a")
    assert (response.status, await response.json()) == (409, {"message": "port is taken"})
    assert engine.calls[-1] == ("remove", box.id, True, True, False)
    assert attachment.was_closed.is_set()


async def test_who_leaves_leaves_it_running(
    client: ClientSession, engine: FakeEngine, attachment: FakeAttachment
) -> None:
    response = await client.post("/containers/run?name=a", json=wanted())
    response.close()
    async with asyncio.timeout(5):
        await attachment.was_closed.wait()
    assert [call[0] for call in engine.calls] == ["create", "start"]


async def test_who_does_not_read_is_given_up(
    client: ClientSession, engine: FakeEngine, attachment: FakeAttachment
) -> None:
    response = await client.post("/containers/run?name=a", json=wanted())
    attachment.given_up.set()
    async with asyncio.timeout(5):
        await attachment.was_closed.wait()
    response.close()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (None, "invalid JSON: got EOF while reading request body"),
        ({"Image": "busybox"}, "a container that is run in one call removes itself"),
        (wanted(Input="?"), "invalid JSON: Invalid base64 encoded string - at `$.Input`"),
        ({"HostConfig": {"AutoRemove": True}}, "config cannot be empty in order to create a container"),
    ],
)
async def test_what_makes_no_sense_is_refused(
    client: ClientSession, engine: FakeEngine, body: dict[str, Any] | None, message: str
) -> None:
    headers = {"Content-Type": "application/json"}
    data = b"" if body is None else msgspec.json.encode(body)
    response = await client.post("/containers/run", data=data, headers=headers)
    assert response.status == 400
    assert (await response.json())["message"].startswith(message)
    assert engine.calls == []
