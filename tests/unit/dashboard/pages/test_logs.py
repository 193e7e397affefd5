from struct import pack

import pytest

from husk.api.http.response import Response, fields
from tests.support.dashboard import WEB, Asker
from tests.support.fake_engine import FakeEngine

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


@pytest.mark.parametrize("query", ["tail=-1", "tail=x", "stream=stdin", "tail=9999999999"])
async def test_what_cannot_be_is_refused(asker: Asker, query: str) -> None:
    for path in ("logs", "logs/lines", "logs/file"):
        assert (await asker.get(f"/containers/web/{path}?{query}")).status == 400
