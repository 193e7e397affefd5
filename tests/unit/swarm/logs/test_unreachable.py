from husk.api.framing import LogEncoder
from husk.engine.logs.read import AsRecords
from husk.engine.logs.records import STDERR, LogQuery
from husk.swarm.logs.unreachable import note, told
from tests.unit.swarm.manager.test_planner import make_task


async def test_a_line_says_why_a_log_cannot_be_read() -> None:
    task = make_task(1)
    line = told([task], "beta", "the node is down")
    assert line.startswith("husk: the log of this task cannot be read from beta") and line.endswith("the node is down")
    assert "the logs of 2 tasks" in told([task, task], "beta", "")
    [[record]] = [records async for records in note([task], "beta", "the node is down", LogQuery(), AsRecords())]
    assert (record.stream, record.data) == (STDERR, line.encode() + b"\n")
    plain = LogEncoder(multiplexed=False, timestamps=False)
    assert [text async for text in note([task], "beta", "the node is down", LogQuery(), plain)] == [
        line.encode() + b"\n"
    ]
    none = LogQuery(stderr=False)
    assert [text async for text in note([task], "beta", "", none, plain)] == []
