"""Attaching over a WebSocket: bytes both ways, and every way in which it ends."""

import asyncio
from typing import Any

import pytest
from aiohttp import ClientSession, WSMsgType

from husk.engine.model.container_config import ContainerConfig
from tests.unit.api.fake_engine import FakeAttachment, FakeEngine, container

PATH = "/containers/web/attach/ws?stream=1&stdin=1&stdout=1"


@pytest.fixture
def attachment(engine: FakeEngine) -> FakeAttachment:
    engine.containers.add(container(config=ContainerConfig(tty=True)))
    engine.containers.attachment = FakeAttachment(tty=True, endless=True)
    return engine.containers.attachment


async def closed(attachment: FakeAttachment) -> None:
    async with asyncio.timeout(5):
        await attachment.was_closed.wait()


async def test_bytes_go_both_ways_until_the_container_ends(
    client: ClientSession, engine: FakeEngine, attachment: FakeAttachment
) -> None:
    async with client.ws_connect(PATH) as socket:
        await socket.send_str("hello")
        first: Any = await socket.receive()
        assert (first.type, first.data) == (WSMsgType.BINARY, b"hello")
        await socket.send_bytes(b"\xff")
        assert await socket.receive_bytes() == b"\xff"
        attachment.feed.put_nowait(None)
        assert (await socket.receive()).type == WSMsgType.CLOSE
    await closed(attachment)
    assert engine.containers.attached == {
        "stdin": True, "stdout": True, "stderr": False, "logs": False, "stream": True,
    }  # fmt: skip


async def test_a_client_that_closes_lets_go(client: ClientSession, attachment: FakeAttachment) -> None:
    async with client.ws_connect(PATH) as socket:
        await socket.close()
    await closed(attachment)


async def test_the_keys_that_detach_are_not_for_the_container(
    client: ClientSession, attachment: FakeAttachment
) -> None:
    async with client.ws_connect(PATH + "&detachKeys=ctrl-a,x") as socket:
        await socket.send_bytes(b"ls\x01x")
        assert await socket.receive_bytes() == b"ls"
        assert (await socket.receive()).type == WSMsgType.CLOSE
    await closed(attachment)
    assert attachment.was_detached and bytes(attachment.received) == b"ls"


async def test_a_client_that_does_not_read_is_dropped(client: ClientSession, attachment: FakeAttachment) -> None:
    async with client.ws_connect(PATH) as socket:
        attachment.given_up.set()
        assert (await socket.receive()).type == WSMsgType.CLOSE
    await closed(attachment)


async def test_old_clients_get_everything_and_as_text(
    client: ClientSession, engine: FakeEngine, attachment: FakeAttachment
) -> None:
    async with client.ws_connect("/v1.27/containers/web/attach/ws?stream=1") as socket:
        attachment.feed.put_nowait((1, b"a\xff"))
        assert await socket.receive_str() == "a\ufffd"
    assert engine.containers.attached["stdin"] and engine.containers.attached["stderr"]
    await closed(attachment)


async def test_what_is_no_websocket_is_refused_before_anybody_attaches(
    client: ClientSession, engine: FakeEngine, attachment: FakeAttachment
) -> None:
    assert (await client.get(PATH)).status == 400
    assert (await client.get("/containers/nobody/attach/ws")).status == 404
    assert (await client.get(PATH + "&detachKeys=nonsense-keys")).status == 400
    assert engine.containers.attached == {}
