import asyncio
from struct import pack

import pytest

from husk.api.http.request import Request
from husk.api.http.response import Answer, Response, StreamedResponse, fields
from husk.dashboard.server import Dashboard
from tests.support.dashboard import WEB, Asker
from tests.support.fake_engine import FakeEngine, failed
from tests.support.waiting import until_async

LOGS = f"/containers/{'a' * 64}/logs"


def frame(stream: int, text: str) -> bytes:
    return pack(">BxxxL", stream, len(text.encode())) + text.encode()


@pytest.fixture(autouse=True)
def web(engine: FakeEngine) -> None:
    engine.answers("GET", "/containers/web/json", WEB)
    said = frame(1, "2026-01-31T12:00:00Z hello\n") + frame(2, "2026-01-31T12:00:01Z oh no\n")
    kind = fields({"Content-Type": "application/vnd.docker.multiplexed-stream"})
    engine.answers("GET", LOGS, Response(200, said, kind))


async def test_lines_are_told_with_time_and_stream(asker: Asker, engine: FakeEngine) -> None:
    page = await asker.get("/containers/web/logs/lines?tail=5&since=10m&until=1m&stream=stderr")
    assert (
        b'event: lines\ndata: [["2026-01-31T12:00:00Z","stdout","hello"],["2026-01-31T12:00:01Z","stderr","oh no"]]'
        in (page.body)
    )
    assert page.body.endswith(b"event: end\ndata: {}\n\n")
    query = engine.last("GET", LOGS).query
    assert (query["tail"], query["follow"], query["stdout"], query["stderr"]) == ("5", "1", "0", "1")
    assert query["timestamps"] == "1" and query["since"] and query["until"]


async def test_words_are_searched_for_on_the_server(asker: Asker) -> None:
    page = await asker.get("/containers/web/logs/lines?search=OH")
    assert b"oh no" in page.body and b"hello" not in page.body


async def test_a_log_is_a_file(asker: Asker) -> None:
    page = await asker.get("/containers/web/logs/file")
    assert page.text == "2026-01-31T12:00:00Z hello\n2026-01-31T12:00:01Z oh no\n"
    assert page.headers["content-disposition"] == 'attachment; filename="web.log"'


async def test_the_page_hands_its_choice_on(asker: Asker) -> None:
    page = await asker.get("/containers/web/logs?tail=7&search=a%26b")
    assert 'data-source="/containers/web/logs/lines?tail=7&amp;' in page.text and "search=a%26b" in page.text


@pytest.fixture
def shop(engine: FakeEngine) -> None:
    labels = {"com.docker.compose.project": "shop"}
    rows = [{"Id": name * 64, "Names": [f"/shop-{name}-1"], "State": "running", "Labels": labels} for name in "bc"]
    rows.append({"Id": "d" * 64, "Names": ["/else"], "State": "running", "Labels": {}})
    engine.answers("GET", "/containers/json", rows)
    kind = fields({"Content-Type": "application/vnd.docker.multiplexed-stream"})
    for name in "bc":
        said = frame(1, f"2026-01-31T12:00:00Z from {name}\n")
        engine.answers("GET", f"/containers/{name * 64}/logs", Response(200, said, kind))
    engine.answers("GET", f"/containers/{'d' * 64}/logs", failed(501, "its driver keeps nothing"))


async def test_the_logs_of_a_project_are_one(asker: Asker, shop: None) -> None:
    page = await asker.get("/logs?project=shop")
    assert "Log of shop" in page.text and "shop-b-1" in page.text and "else" not in page.text
    assert 'data-source="/logs/lines?tail=1000&amp;since=&amp;project=shop"' in page.text
    told = (await asker.get("/logs/lines?project=shop")).body
    assert b'["2026-01-31T12:00:00Z","stdout","from b","b-1"]' in told and b'"from c","c-1"]' in told
    assert told.endswith(b"event: end\ndata: {}\n\n")


async def test_a_log_that_cannot_be_read_says_so_beside_the_others(asker: Asker, shop: None) -> None:
    told = (await asker.get(f"/logs/lines?id={'d' * 12}&id={'b' * 12}")).body
    assert b"this log cannot be read: its driver keeps nothing" in told and b'"from b","shop-b-1"' in told
    assert f"id={'b' * 12}" in (await asker.get(f"/logs?id={'b' * 12}")).text


async def test_logs_of_nobody_are_refused(asker: Asker, engine: FakeEngine, shop: None) -> None:
    for query in ("", "project=none", "id=%3Cx%3E", "project="):
        for path in ("/logs", "/logs/lines"):
            assert (await asker.get(f"{path}?{query}")).status == 404
    many = [{"Id": f"{n:064x}", "Names": [f"/{n}"], "Labels": {"com.docker.compose.project": "p"}} for n in range(51)]
    engine.answers("GET", "/containers/json", many)
    page = await asker.get("/logs?project=p")
    assert page.status == 400 and "51 logs are too many" in page.text


@pytest.mark.parametrize("said", [b"2026-01-31T12:00:00Z one\n", b"2026-01-31T12:00:00Z many\n" * 4000])
async def test_all_logs_end_when_the_browser_goes(
    asker: Asker, dashboard: Dashboard, engine: FakeEngine, shop: None, said: bytes
) -> None:
    open_ones: set[str] = set()

    async def endless(request: Request) -> Answer:
        kind = fields({"Content-Type": "application/vnd.docker.multiplexed-stream"})
        answer = StreamedResponse(request, kind)
        open_ones.add(request.path)
        try:
            while True:
                await answer.write(pack(">BxxxL", 1, len(said)) + said)
                if len(said) < 100:
                    await asyncio.Event().wait()
        finally:
            open_ones.discard(request.path)

    for name in "bc":
        engine.answers("GET", f"/containers/{name * 64}/logs", endless)
    before = dashboard.site.tasks.count
    connection, answer = await asyncio.to_thread(asker.browser.open, "GET", "/logs/lines?project=shop")
    assert answer.status == 200
    await until_async(lambda: len(open_ones) == 2, "both logs to be read")
    # What the browser does not read fills all that is on the way.
    connection.close()
    answer.close()
    await until_async(lambda: not open_ones, "both logs to be left")
    await until_async(lambda: dashboard.site.tasks.count <= before, "the tasks of the page to end")


@pytest.mark.parametrize("query", ["tail=-1", "tail=x", "stream=stdin", "tail=9999999999"])
async def test_what_cannot_be_is_refused(asker: Asker, query: str) -> None:
    for path in ("logs", "logs/lines", "logs/file"):
        assert (await asker.get(f"/containers/web/{path}?{query}")).status == 400
