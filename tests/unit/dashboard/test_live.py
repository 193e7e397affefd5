import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from husk.aio.tasks import Tasks
from husk.api.http.request import Request
from husk.api.http.response import Answer, StreamedResponse, fields
from husk.client.client import Client
from husk.dashboard.live import AWAY, BACK, Live, Message
from tests.support.fake_engine import FakeEngine


def told(action: str, **attributes: str) -> bytes:
    actor = {"ID": "abc", "Attributes": {"name": "web", **attributes}}
    return json.dumps({"Type": "container", "Action": action, "Actor": actor, "timeNano": 5_000_000}).encode() + b"\n"


class Events:
    """The stream of events of an engine, as the test lets it be."""

    def __init__(self) -> None:
        self.streams = 0
        self.ended = asyncio.Event()
        self.said: asyncio.Queue[bytes] = asyncio.Queue()

    async def __call__(self, request: Request) -> Answer:
        self.streams += 1
        answer = StreamedResponse(request, fields({"Content-Type": "application/json"}))
        try:
            while data := await self.said.get():
                await answer.write(data)
            return answer
        finally:
            self.ended.set()


@pytest.fixture
async def events() -> Events:
    return Events()


@pytest.fixture
async def live(events: Events) -> AsyncIterator[Live]:
    engine = FakeEngine()
    engine.answers("GET", "/events", events)
    client, tasks = Client(engine.dial), Tasks()
    yield Live(client, tasks)
    await tasks.cancel_all()
    await client.close()
    await engine.close()


async def next_of(queue: "asyncio.Queue[Message]") -> Message:
    async with asyncio.timeout(20):
        return await queue.get()


async def test_of_what_happened_as_much_is_kept_as_pages_show(live: Live, events: Events) -> None:
    """Labels are among the attributes, and may be of half a million characters."""
    with live.listening() as queue:
        events.said.put_nowait(told("die", exitCode="3", label="x" * 50_000))
        await next_of(queue)
    assert [event.attributes for event in live.recent] == [{"name": "web", "exitCode": "3"}]


async def test_one_stream_serves_all_who_look(live: Live, events: Events) -> None:
    with live.listening() as one, live.listening() as other:
        events.said.put_nowait(told("die"))
        shown = ("change", {"type": "container", "action": "die", "id": "abc", "name": "web", "time": 5})
        assert await next_of(one) == await next_of(other) == shown
        assert events.streams == 1


async def test_what_changes_nothing_is_not_told(live: Live, events: Events) -> None:
    with live.listening() as queue:
        events.said.put_nowait(told("exec_start: sh") + told("top") + told("start"))
        name, document = await next_of(queue)
        assert name == "change" and isinstance(document, dict) and document["action"] == "start"
        assert live.changes == 1


async def test_an_engine_that_goes_is_told_and_listened_to_again(live: Live, events: Events) -> None:
    with live.listening() as queue:
        events.said.put_nowait(told("start"))
        assert (await next_of(queue))[0] == "change"
        events.said.put_nowait(b"")
        assert await next_of(queue) == AWAY
        assert await next_of(queue) == BACK
        events.said.put_nowait(told("stop"))
        assert (await next_of(queue))[0] == "change"
        assert events.streams == 2


async def test_nobody_listens_where_nobody_looks(live: Live, events: Events) -> None:
    with live.listening() as queue:
        events.said.put_nowait(told("start"))
        await next_of(queue)
        assert not events.ended.is_set()
    async with asyncio.timeout(20):
        await events.ended.wait()
    assert events.streams == 1


async def test_who_does_not_read_is_told_to_look_again(live: Live) -> None:
    with live.listening() as queue:
        for number in range(300):
            live.tell(("change", number))
        assert queue.get_nowait() == BACK
        assert queue.qsize() < 256


async def test_what_is_no_event_does_not_end_the_listening(live: Live, events: Events) -> None:
    with live.listening() as queue:
        events.said.put_nowait(b"no event\n")
        assert await next_of(queue) == AWAY
        assert await next_of(queue) == BACK
        events.said.put_nowait(told("die"))
        name, _ = await next_of(queue)
        assert name == "change"
