from datetime import UTC, datetime

import pytest

from husk.api.http.response import Response, fields
from husk.api.streams.framing import frame
from husk.client.container import Container
from husk.client.logs import LogEntry
from husk.client.output import MULTIPLEXED
from husk.errors import InvalidParameter

AT = datetime(2026, 1, 2, 3, 4, 5, 123456, UTC)


@pytest.fixture
def box(calls, engine):
    written = (
        frame(1, b"2026-01-02T03:04:05.123456789Z level=info all is well\n")
        + frame(2, b"2026-01-02T03:04:05.123456789Z ERROR: it ")
        + frame(2, b"is not\n")
        + frame(1, b"no time, no level")
    )
    engine.answers("GET", "/containers/c1/logs", Response(200, written, fields({"Content-Type": MULTIPLEXED})))
    return Container(calls, {"Id": "c1", "Name": "/box"})


async def test_lines_with_time_stream_and_level(box, engine):
    assert [entry async for entry in box.logs(tail=3).entries()] == [
        LogEntry(AT, "stdout", "info", "level=info all is well"),
        LogEntry(AT, "stderr", "error", "ERROR: it is not"),
        LogEntry(None, "stdout", "", "no time, no level"),
    ]
    assert engine.last("GET", "/containers/c1/logs").query["timestamps"] == "1"


async def test_those_of_a_level_alone(box, engine):
    assert [entry.text async for entry in box.logs().entries(level="warning")] == ["ERROR: it is not"]
    with pytest.raises(InvalidParameter, match="invalid level 'loud': expected one of trace, debug"):
        _ = [entry async for entry in box.logs().entries(level="loud")]


async def test_what_is_read_without_levels_has_no_times(box, engine):
    await box.logs()
    assert engine.last("GET", "/containers/c1/logs").query["timestamps"] == "0"
