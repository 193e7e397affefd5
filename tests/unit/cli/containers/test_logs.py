import json

import pytest

FIRST = b"2026-01-01T00:00:01Z one\n2026-01-01T00:00:03Z ERROR three\n"
SECOND = b"2026-01-01T00:00:02Z two"


@pytest.fixture
def boxes(engine):
    for name, written in (("web", FIRST), ("db", SECOND)):
        engine.answers("GET", f"/containers/{name}/json", {"Id": f"id-{name}", "Name": f"/{name}"})
        engine.answers("GET", f"/containers/id-{name}/logs", written)
    return engine


def test_of_one_as_it_was_written(boxes, typed):
    boxes.answers("GET", "/containers/id-web/logs", b"no end")
    assert typed("logs", "--details", "web").out == "no end"
    assert boxes.last("GET", "/containers/id-web/logs").query["details"] == "1"


def test_of_several_by_their_time(boxes, typed):
    assert typed("logs", "web", "db").out == "web | one\ndb  | two\nweb | ERROR three\n"
    assert typed("logs", "-t", "db", "web").out.splitlines()[0] == "web | 2026-01-01T00:00:01Z one"
    told = [json.loads(each) for each in typed("logs", "--json", "web", "db").out.splitlines()]
    assert [each["Name"] for each in told] == ["web", "db", "web"]


def test_of_several_while_they_write(boxes, typed):
    told = typed("logs", "-f", "web", "db").out.splitlines()
    assert sorted(told) == ["db  | two", "web | ERROR three", "web | one"]


def test_of_a_project(boxes, typed):
    members = [{"Id": "id-web", "Names": ["/web"]}, {"Id": "id-db", "Names": ["/db"]}]
    boxes.answers("GET", "/containers/json", members)
    assert typed("logs", "shop").out == "web | one\ndb  | two\nweb | ERROR three\n"
    asked = json.loads(boxes.last("GET", "/containers/json").query["filters"])
    assert asked == {"label": ["com.docker.compose.project=shop"]}


def test_what_is_not_there(boxes, typed):
    boxes.answers("GET", "/containers/json", [])
    assert typed("logs", "nobody").code == 1
    assert typed("logs", "web", "nobody").code == 1


def test_levels_and_fields(boxes, typed):
    assert typed("logs", "--level", "error", "web").out == "ERROR three\n"
    boxes.answers("GET", "/containers/id-db/logs", b'2026-01-01T00:00:02Z {"level":"info","msg":"hello"}\n')
    assert typed("logs", "--json-fields", "level,msg", "db").out == "info hello\n"
    assert "expected fatal, error" in typed("logs", "--level", "loud", "web").err
