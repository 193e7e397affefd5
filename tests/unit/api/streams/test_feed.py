"""Work that takes a while: its progress, its failure before or behind the first line, and a client that goes."""

import asyncio
import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.aio.tasks import Tasks
from husk.api.calls.call import Call
from husk.api.streams import feed as feeds
from husk.api.streams.feed import (
    ProgressFeed,
    Work,
    error_line,
    human_size,
    progress_bar,
    progress_line,
    stream_progress,
)
from husk.engine.model.image import Progress
from husk.errors import CommandFailed, HuskError, NotFound


class FakeResponse:
    def __init__(self, gone: bool) -> None:
        self.sent = b""
        self.ended = False
        self._gone = gone

    async def write(self, data: bytes) -> None:
        if self._gone:
            raise ConnectionResetError("the client has gone")
        self.sent += data

    async def write_eof(self) -> None:
        self.ended = True


class FakeCall:
    def __init__(self, gone: bool = False) -> None:
        self.common = self
        self.changes = Tasks()
        self.response: FakeResponse | None = None
        self._gone = gone
        self.request = self
        self.fault = ""

    def stream(self, content_type: str) -> FakeResponse:
        self.response = FakeResponse(self._gone)
        return self.response

    def empty(self, status: int) -> int:
        return status

    @property
    def lines(self) -> list[dict[str, Any]]:
        assert self.response is not None and self.response.ended
        return [json.loads(line) for line in self.response.sent.splitlines()]


async def told(call: FakeCall, work: Work, **how: bool) -> Any:
    return await stream_progress(cast(Call, call), work, "work", **how)


async def test_progress_of_a_layer_is_told_by_its_newest_number_and_statements_each() -> None:
    feed = ProgressFeed()
    for current in range(5):
        feed.add(Progress(status="Downloading", id="0123456789ab", current=current + 1, total=5))
    feed.add(Progress(status="Done"))
    feed.add(Progress(status="Done"))
    feed.close()
    lines = [json.loads(line) for line in (await feed.next()).splitlines()]
    assert [line.get("progressDetail", {}).get("current") for line in lines] == [5, None, None]
    assert await feed.next() == b""


async def test_work_without_a_word_is_an_empty_answer() -> None:
    async def silent(report: object) -> None:
        return None

    call = FakeCall()
    assert await told(call, silent) == 200 and call.response is None


@pytest.mark.parametrize("error", [NotFound("no such image"), ValueError("odd")])
async def test_a_failure_before_the_first_line_has_a_status(error: Exception) -> None:
    async def failing(report: object) -> None:
        raise error

    with pytest.raises(type(error)):
        await told(FakeCall(), failing)
    call = FakeCall()
    await told(call, failing, errors_in_stream=True)
    assert call.lines[-1]["error"].endswith(str(error))


async def test_a_failure_behind_it_is_the_last_line() -> None:
    def failing(error: Exception) -> Work:
        async def work(report: Any) -> None:
            report(Progress(status="Pulling"))
            raise error

        return work

    for error, detail in (
        (NotFound("gone"), {"message": "gone"}),
        (CommandFailed("it failed", 7), {"message": "it failed", "code": 7}),
        (KeyError("x"), {"message": "internal error: KeyError: 'x'"}),
    ):
        call = FakeCall()
        await told(call, failing(error))
        first, last = call.lines
        assert first["status"] == "Pulling" and last["errorDetail"] == detail


class Slow:
    """Work that goes on until it is let go of."""

    def __init__(self, error: HuskError | None = None) -> None:
        self.begun, self.go = asyncio.Event(), asyncio.Event()
        self.ended = ""
        self._error = error

    async def __call__(self, report: Any) -> None:
        report(Progress(status="Begun"))
        self.begun.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.ended = "cut off"
            raise
        if self._error is not None:
            raise self._error
        self.ended = "done"


async def test_work_ends_with_its_client_unless_it_is_to_be_done() -> None:
    work = Slow()
    with pytest.raises(ConnectionResetError):
        await told(FakeCall(gone=True), work)
    assert work.ended == "cut off"
    call, work = FakeCall(gone=True), Slow()
    with pytest.raises(ConnectionResetError):
        await told(call, work, to_its_end=True)
    assert work.ended == ""
    work.go.set()
    await call.changes.join()
    assert work.ended == "done"


async def test_a_failure_that_nobody_hears_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    call, work = FakeCall(gone=True), Slow(NotFound("it went wrong"))
    with pytest.raises(ConnectionResetError):
        await told(call, work, to_its_end=True)
    work.go.set()
    await call.changes.join()
    assert "work failed when its client had gone: it went wrong" in caplog.text


async def test_others_have_their_turn_while_thousands_of_records_are_written() -> None:
    feed, turns = ProgressFeed(), 0
    for _ in range(5000):
        feed.add(Progress(status="Done"))
    tasks = Tasks()
    writing = tasks.spawn(feed.next(), "write")
    while not writing.done():
        await asyncio.sleep(0)
        turns += 1
    assert writing.result().count(b"\n") == 5000
    assert turns > 20


async def test_what_waits_is_sent_together_unless_it_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "PROGRESS_INTERVAL", 3600)
    feed = ProgressFeed()
    for _ in range(2000):
        feed.add(Progress(status="Done"))
    await feed.gather()
    await feed.next()
    feed.add(Progress(status="Done"))
    waiting = Tasks().spawn(feed.gather(), "wait")
    await asyncio.sleep(0)
    assert not waiting.done()
    feed.close()
    await waiting


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0B"), (1, "1B"), (999, "999B"), (1000, "1kB"), (1234, "1.234kB"), (4_261_550, "4.262MB"), (3e9, "3GB")],
)
def test_sizes_have_four_digits(count: float, text: str) -> None:
    assert human_size(count) == text


def test_a_bar_fills() -> None:
    assert progress_bar(0, 0) == ""
    assert progress_bar(500, 0) == "    500B"
    assert progress_bar(0, 100) == "[>" + " " * 50 + "]       0B/100B"
    assert progress_bar(1_200_000, 3_000_000) == "[" + "=" * 20 + ">" + " " * 30 + "]    1.2MB/3MB"
    assert progress_bar(100, 100) == "[" + "=" * 50 + ">]     100B/100B"
    assert progress_bar(200, 100) == "[" + "=" * 50 + ">]     200B"


@given(st.integers(0, 10**13), st.integers(1, 10**13))
def test_a_bar_is_always_as_wide(current: int, total: int) -> None:
    assert progress_bar(current, total).index("]") == 52


def test_a_layer_has_details_and_a_statement_has_none() -> None:
    assert json.loads(progress_line(Progress(status="Pulling fs layer", id="0123456789ab"))) == {
        "status": "Pulling fs layer",
        "progressDetail": {},
        "id": "0123456789ab",
    }
    assert json.loads(progress_line(Progress(status="Pulling from library/busybox", id="latest"))) == {
        "status": "Pulling from library/busybox",
        "id": "latest",
    }
    assert json.loads(progress_line(Progress(status="Downloading", id="0123456789ab", current=1, total=2))) == {
        "status": "Downloading",
        "progressDetail": {"current": 1, "total": 2},
        "progress": progress_bar(1, 2),
        "id": "0123456789ab",
    }


def test_an_error_says_it_twice() -> None:
    assert json.loads(error_line("no")) == {"errorDetail": {"message": "no"}, "error": "no"}
