import asyncio
import json

import pytest

from husk.builder.dockerfile import questions
from husk.builder.dockerfile.convert import convert
from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.options import Options
from husk.builder.dockerfile.parse import parse
from husk.builder.dockerfile.rules import Span, Warning
from husk.builder.graph.graph import SourceFile
from tests.unit.builder.dockerfile.building import Images

FILE = "# base is below\nFROM busybox AS base\nARG WHO=you\nFROM base\n\nRUN --mount=type=secret,id=x true\n"
SOURCE = SourceFile("Dockerfile", FILE.encode())


def read(answer):
    assert answer["version"] == b"1.0.0"
    return json.loads(answer["result.json"]), answer["result.txt"].decode()


def test_warnings_with_their_places():
    found = [Warning("StageNameCasing", "second", Span(4, 4)), Warning("FromAsCasing", "first", Span(2, 3))]
    answer = questions.lint(SOURCE, found, None)
    document, text = read(answer)
    assert [one["ruleName"] for one in document["warnings"]] == ["StageNameCasing", "FromAsCasing"]
    assert document["warnings"][1]["location"]["ranges"] == [
        {"start": {"line": 2}, "end": {"line": 2}},
        {"start": {"line": 3}, "end": {"line": 3}},
    ]
    assert document["warnings"][0]["url"].endswith("/stage-name-casing/")
    assert document["sources"][0]["filename"] == "Dockerfile"
    assert "buildError" not in document
    assert text.index("first") < text.index("second")
    assert "Dockerfile:4\n--------------------\n   2 |     FROM busybox AS base" in text
    assert answer["result.statuscode"] == b"1"
    assert questions.lint(SOURCE, [], None)["result.statuscode"] == b"0"


def test_a_file_that_cannot_be_built():
    answer = questions.lint(SOURCE, [], DockerfileError("wrong", Span(6, 6)))
    document, text = read(answer)
    assert document["buildError"] == {
        "message": "wrong",
        "location": {"ranges": [{"start": {"line": 6}, "end": {"line": 6}}]},
    }
    assert (text, answer["result.statuscode"]) == ("", b"1")
    assert read(questions.lint(SOURCE, [], DockerfileError("wrong")))[0]["buildError"]["location"] == {}


def test_targets():
    document, text = read(questions.targets(SOURCE, parse(FILE)))
    assert [one.get("name") for one in document["targets"]] == ["base", None]
    assert document["targets"][1]["default"] is True
    assert text == "TARGET    DESCRIPTION\nbase      is below\n(default) \n"


@pytest.mark.parametrize(("target", "name"), [("", ""), ("BASE", "base"), ("0", "base")])
def test_what_a_target_can_be_given(target, name):
    result = asyncio.run(convert(FILE, Options(target=target), Images()))
    document, text = read(questions.outlined(SOURCE, parse(FILE), target, result))
    assert document.get("name", "") == name
    assert [one["name"] for one in document["args"]] == ["WHO"]
    assert ("secrets" in document) == (not name)
    assert "BUILD ARG   VALUE   DESCRIPTION\nWHO         you     \n" in text
    assert ("TARGET:      base\nDESCRIPTION: is below\n" in text) == bool(name)


def test_the_questions_themselves():
    document, text = read(questions.described())
    assert {one["name"] for one in document} == set(questions.QUESTIONS)
    assert text.startswith("NAME                 VERSION DESCRIPTION\n")


@pytest.mark.parametrize(("line", "shown"), [(1, [1, 2, 3]), (4, [2, 3, 4, 5, 6]), (7, [5, 6, 7]), (9, [])])
def test_lines_around_a_place(line, shown):
    text = questions.excerpt(SOURCE, Span(line, line))
    assert [int(row.split("|")[0]) for row in text.splitlines() if "|" in row] == shown
