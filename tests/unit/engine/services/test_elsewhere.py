from husk.api.framing import LogEncoder
from husk.engine.logs.read import AsRecords
from husk.engine.logs.records import STDERR, LogQuery
from husk.engine.services.elsewhere import note, told

from .test_planner import make_task


async def test_a_line_says_where_a_log_is() -> None:
    task = make_task(1)
    task.status.container_id = "0123456789abcdef"
    line = told(task, "beta")
    assert "on beta alone" in line and "docker logs 0123456789ab on" in line
    [[record]] = [records async for records in note(task, "beta", LogQuery(), AsRecords())]
    assert (record.stream, record.data) == (STDERR, line.encode() + b"\n")
    plain = LogEncoder(multiplexed=False, timestamps=False)
    assert [text async for text in note(task, "beta", LogQuery(), plain)] == [line.encode() + b"\n"]
    assert [text async for text in note(task, "beta", LogQuery(stderr=False), plain)] == []
