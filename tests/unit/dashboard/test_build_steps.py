from husk.builder.protocol.messages.common import Status, Timestamp
from husk.builder.protocol.messages.control import (
    BuildHistoryRecord,
    Exporter,
    StatusResponse,
    Vertex,
    VertexLog,
    VertexWarning,
)
from husk.dashboard.build_steps import MOST_OUTPUT, arguments, build, name_of, said_of, steps


def test_a_build_is_running_until_it_has_ended() -> None:
    record = BuildHistoryRecord(ref="r", created_at=Timestamp(100))
    assert (build(record).state, build(record).took) == ("running", None)
    record.completed_at = Timestamp(102, 500_000_000)
    assert (build(record).state, build(record).took) == ("done", 2.5)
    record.error = Status(2, "exit code: 7")
    assert (build(record).state, build(record).error) == ("failed", "exit code: 7")


def test_a_build_is_called_by_what_it_made_or_was_made_of() -> None:
    named = BuildHistoryRecord(exporters=[Exporter("moby", {"name": "a:1,b:2"})])
    assert name_of(named) == "a:1, b:2"
    assert name_of(BuildHistoryRecord(exporter_response={"image.name": "c"})) == "c"
    assert name_of(BuildHistoryRecord(frontend_attrs={"vcs:localdir:context": "app/", "filename": "D"})) == "app/D"
    assert name_of(BuildHistoryRecord()) == "./Dockerfile"


def test_what_was_asked_for_is_told_without_secrets() -> None:
    record = BuildHistoryRecord(
        frontend_attrs={"target": "web", "filename": "", "build-arg:TOKEN": "hunter2", "build-arg:A": "b"}
    )
    assert said_of(record) == [("Target", "web")]
    assert [(each.name, each.hidden) for each in arguments(record)] == [("A", False), ("TOKEN", True)]
    assert "hunter2" not in str(arguments(record))


def test_steps_have_their_last_state_and_all_that_they_wrote() -> None:
    started, ended = Timestamp(10), Timestamp(12)
    told = [
        StatusResponse(vertexes=[Vertex(digest="a", name="A"), Vertex(digest="b", name="B", started=started)]),
        StatusResponse(logs=[VertexLog("a", None, 1, b"one\ntw"), VertexLog("a", None, 2, b"o\n"), VertexLog("x")]),
        StatusResponse(
            vertexes=[
                Vertex(digest="a", name="A", started=started, completed=ended),
                Vertex(digest="c", name="C", started=started, completed=ended, cached=True),
                Vertex(digest="d", name="D", started=started, completed=ended, error="broken"),
                Vertex(digest="e", name="E"),
            ],
            warnings=[VertexWarning(vertex="c", short=b"careful")],
        ),
    ]
    found = steps(told)
    assert [(each.name, each.state) for each in found] == [
        ("A", "done"), ("B", "running"), ("C", "cached"), ("D", "failed"), ("E", "waiting"),
    ]  # fmt: skip
    assert (found[0].text, found[0].took, found[2].warnings, found[3].error) == ("one\ntwo", 2.0, ["careful"], "broken")


def test_output_is_plain_and_of_a_long_one_the_end() -> None:
    vertex = Vertex(digest="a", name="A")
    coloured = b"\x1b[31mred\x1b[0m \x1b]0;title\x07on\r\n10%\r50%\r100%\n"
    assert steps([StatusResponse([vertex], [], [VertexLog("a", None, 1, coloured)])])[0].text == "red on\n100%"
    much = steps(
        [StatusResponse([vertex], [], [VertexLog("a", None, 1, b"x" * MOST_OUTPUT), VertexLog("a", msg=b"y")])]
    )
    assert len(much[0].text) == MOST_OUTPUT and much[0].text.endswith("xy")
