import asyncio

import pytest

from husk import errors
from husk.api.http.hijack import hijack
from husk.api.http.response import Response, StreamedResponse, Unanswered, fields
from husk.client.calls import Calls, target_of
from tests.support.fake_engine import failed


def test_a_query_as_docker_writes_it():
    query = {"all": True, "size": False, "limit": 3, "none": None, "filters": {"a": ["b"]}, "changes": ["x", "y z"]}
    assert (
        target_of("/containers/json", query)
        == "/containers/json?all=1&size=0&limit=3&filters=%7B%22a%22%3A%5B%22b%22%5D%7D&changes=x&changes=y+z"
    )
    assert target_of("/images/a b/json", {"filters": {}}) == "/images/a%20b/json"


async def test_documents(calls, engine):
    engine.answers("POST", "/things", {"Id": "1"})
    assert await calls.post("/things", {"a": 1}, {"q": 2}) == {"Id": "1"}
    asked = engine.last("POST", "/things")
    assert (asked.document, asked.query, asked.headers["content-type"]) == ({"a": 1}, {"q": "2"}, "application/json")


async def test_no_document_is_none(calls, engine):
    engine.answers("DELETE", "/things/1", None)
    assert await calls.delete("/things/1") is None


async def test_one_connection_serves_one_call_after_the_other(calls, engine):
    engine.answers("GET", "/things", [1])
    for _ in range(5):
        assert await calls.get("/things") == [1]
    assert engine.connections <= 2


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, errors.InvalidParameter),
        (401, errors.Unauthorized),
        (403, errors.Forbidden),
        (404, errors.NotFound),
        (409, errors.Conflict),
        (418, errors.InvalidParameter),
        (500, errors.SystemFault),
        (501, errors.NotImplementedYet),
        (503, errors.Unavailable),
    ],
)
async def test_failures_are_our_errors(calls, engine, status, error):
    engine.answers("GET", "/things", failed(status, "so it is"))
    with pytest.raises(error, match="so it is") as caught:
        await calls.get("/things")
    assert type(caught.value) is error


async def test_what_is_as_it_shall_be(calls, engine):
    engine.answers("POST", "/things", Response(304))
    with pytest.raises(errors.NotModified):
        await calls.post("/things")


async def test_a_failure_without_words(calls, engine):
    engine.answers("GET", "/things", Response(500, b""))
    with pytest.raises(errors.SystemFault, match="status 500"):
        await calls.get("/things")


async def test_lines_come_as_they_are_written(calls, engine):
    async def answer(request):
        response = StreamedResponse(request, fields({"Content-Type": "application/json"}))
        for piece in (b'{"a":', b'1}\r\n{"a":2}\n\n{"a"', b":3}"):
            await response.write(piece)
        await response.write_eof()
        return response

    engine.answers("GET", "/events", answer)
    assert [line async for line in calls.lines("GET", "/events")] == [{"a": 1}, {"a": 2}, {"a": 3}]


async def test_a_connection_is_closed_when_its_reader_leaves(calls, engine):
    gone = []

    async def answer(request):
        response = StreamedResponse(request, b"")
        try:
            while True:
                await response.write(b'{"a": 1}\n' * 1000)
        finally:
            gone.append(request.gone)

    engine.answers("GET", "/events", answer)
    events = calls.lines("GET", "/events")
    async for line in events:
        assert line == {"a": 1}
        break
    await events.aclose()
    engine.answers("GET", "/things", [1])
    assert await calls.get("/things") == [1]
    while not gone:
        assert await calls.get("/things") == [1]


async def test_taking_a_connection_over(calls, engine):
    async def answer(request):
        stream = hijack(request, b"")
        await stream.write(b"hello ")
        while data := await stream.read():
            await stream.write(data.upper())
        await stream.finish()
        return Unanswered()

    engine.answers("POST", "/attach", answer)
    early, reader, writer = await calls.upgrade("/attach")
    writer.write(b"you")
    writer.write_eof()
    assert early + await reader.read() == b"hello YOU"
    writer.close()


async def test_a_refused_upgrade(calls, engine):
    engine.answers("POST", "/attach", failed(409, "not running"))
    with pytest.raises(errors.Conflict, match="not running"):
        await calls.upgrade("/attach")


async def test_an_older_engine_is_asked_in_its_own_version(engine):
    engine.answers("GET", "/_ping", Response(200, b"OK", fields({"Api-Version": "1.44"})))
    calls = Calls(engine.dial)
    seen = []

    async def answer(request):
        seen.append(request.path)
        return Response(200, b"")

    engine.answers("GET", "/things", answer)
    await calls.get("/things")
    await calls.close()
    assert seen == ["/v1.44/things"]


async def test_an_engine_that_leaves(calls, engine):
    async def answer(request):
        request.connection.abort()
        return Unanswered()

    engine.answers("GET", "/things", answer)
    with pytest.raises(errors.Unavailable, match="broke the connection off"):
        await calls.get("/things")


@pytest.mark.parametrize("when", ["before it is made", "afterwards"])
async def test_who_is_cancelled_leaves_nothing_that_was_made(calls, when):
    may_make, undone = asyncio.Event(), []

    async def making() -> str:
        await may_make.wait()
        return "thing"

    async def undo(thing: str) -> None:
        await asyncio.sleep(0)
        undone.append(thing)

    caller = asyncio.get_running_loop().create_task(calls.made(making(), undo))
    await asyncio.sleep(0)
    if when == "afterwards":
        may_make.set()
    caller.cancel()
    await asyncio.sleep(0)
    may_make.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert undone == ["thing"]


async def test_what_was_not_made_is_not_undone(calls):
    async def making() -> str:
        raise errors.Conflict("taken")

    with pytest.raises(errors.Conflict):
        await calls.made(making(), lambda thing: pytest.fail("nothing is there"))
