import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from husk.api.http.request import Request
from husk.api.http.response import Answer
from husk.api.http.server import Server
from husk.client.client import Client
from husk.dashboard.guard import Guard, Listening
from husk.dashboard.sessions import BrowserSession
from husk.dashboard.site import Site
from husk.dashboard.visit import Visit
from tests.support.dashboard import Browser
from tests.support.fake_engine import FakeEngine


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    engine = FakeEngine()
    client = Client(engine.dial)
    found = Site(client, Guard(Listening("127.0.0.1", 1), tls=False))
    yield found
    await found.tasks.cancel_all()
    await client.close()
    await engine.close()


def signed_in(site: Site) -> BrowserSession:
    found = site.sessions.sign_in(site.sessions.make_link())
    assert found is not None
    return found[1]


async def told(
    site: Site, messages: "AsyncIterator[tuple[str, object]]", session: BrowserSession | None = None, beat: float = 15.0
) -> bytes:
    """Return the part of a stream that a browser gets."""
    session = session or signed_in(site)

    async def handler(request: Request) -> Answer:
        return await Visit(site, request, session, {}).tell(messages, beat)

    server = Server(handler)
    door = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    try:
        browser = Browser(f"http://127.0.0.1:{door.sockets[0].getsockname()[1]}/")
        return (await asyncio.to_thread(browser.get, "/")).body
    finally:
        door.close()
        await server.close(0)


async def test_messages_are_server_sent_events(site: Site) -> None:
    async def two() -> AsyncIterator[tuple[str, Any]]:
        yield "change", {"id": "a\nb"}
        yield "back", {}

    expected = b'retry: 2000\n\nevent: change\ndata: {"id":"a\\nb"}\n\nevent: back\ndata: {}\n\n'
    assert await told(site, two()) == expected


async def test_a_silent_stream_gives_signs_of_life(site: Site) -> None:
    async def slow() -> AsyncIterator[tuple[str, Any]]:
        await asyncio.sleep(0.1)
        yield "late", 1

    text = await told(site, slow(), beat=0.01)
    assert text.count(b":\n\n") >= 1 and text.endswith(b"event: late\ndata: 1\n\n")


async def test_a_stream_ends_with_its_session(site: Site) -> None:
    session = signed_in(site)
    closed = asyncio.Event()

    async def endless() -> AsyncIterator[tuple[str, Any]]:
        try:
            site.sessions.sign_out(session)
            await asyncio.Event().wait()
            yield "never", 1
        finally:
            closed.set()

    assert b"never" not in await told(site, endless(), session, beat=0.01)
    assert closed.is_set()
