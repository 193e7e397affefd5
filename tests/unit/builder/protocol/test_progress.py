"""Progress of builds, as messages."""

from husk.builder.graph.graph import Location, SourceFile, Vertex
from husk.builder.graph.operations import Edge, Merge, Operation
from husk.builder.graph.progress import Status
from husk.builder.jobs.status_log import LogTold, StatusTold, Told, VertexTold, WarningTold
from husk.builder.protocol.messages.common import Timestamp
from husk.builder.protocol.progress import responses

VERTEX = Vertex(digest="d", operation=Operation(Merge(), [Edge("a"), Edge("b")]), name="n", group="g")


def test_each_kind_is_told_with_all_it_has() -> None:
    told: list[Told] = [
        VertexTold(vertex=VERTEX, started=10**9, completed=2 * 10**9, cached=True, error="e"),
        StatusTold(vertex="d", status=Status(id="s", current=1, total=2), started=10**9, timestamp=2 * 10**9),
        LogTold(vertex="d", stream=2, data=b"line\n", timestamp=10**9),
        WarningTold(
            vertex="d",
            level=1,
            short=b"w",
            detail=[b"more"],
            url="u",
            source=SourceFile("Dockerfile", b"x"),
            locations=[Location(0, 3, 4)],
        ),
    ]
    (answer,) = responses(told)
    (vertex,) = answer.vertexes
    assert (vertex.digest, vertex.inputs, vertex.name, vertex.cached, vertex.error) == ("d", ["a", "b"], "n", True, "e")
    assert (vertex.started, vertex.completed) == (Timestamp(1), Timestamp(2))
    assert vertex.progress_group is not None and vertex.progress_group.id == "g"
    (status,) = answer.statuses
    assert (status.id, status.vertex, status.current, status.total, status.completed) == ("s", "d", 1, 2, None)
    (log,) = answer.logs
    assert (log.vertex, log.stream, log.msg) == ("d", 2, b"line\n")
    (warning,) = answer.warnings
    assert warning.info is not None and warning.info.filename == "Dockerfile"
    assert warning.ranges[0].end is not None and warning.ranges[0].end.line == 4


def test_much_is_told_in_several_messages() -> None:
    lines = [LogTold(vertex="d", stream=1, data=b"x" * (1 << 19), timestamp=1) for _ in range(5)]
    assert [len(answer.logs) for answer in responses(lines)] == [2, 2, 1]
    assert [len(answer.logs) for answer in responses(lines[:0])] == []
    assert len(list(responses([VertexTold(vertex=VERTEX)] * 1001))) == 3
