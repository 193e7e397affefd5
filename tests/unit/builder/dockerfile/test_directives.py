import pytest

from husk.builder.dockerfile.directives import escape_of, read, syntax_of
from husk.builder.dockerfile.errors import DockerfileError


def names(text):
    return [(directive.name, directive.value) for directive in read(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# syntax=docker/dockerfile:1\nFROM a", [("syntax", "docker/dockerfile:1")]),
        ("#syntax = x  \n# ESCAPE=`\nFROM a", [("syntax", "x"), ("escape", "`")]),
        ("# check=skip=A,B;error=true\n", [("check", "skip=A,B;error=true")]),
        ("# a comment\n# syntax=x", []),
        ("\n# syntax=x", []),
        ("FROM a\n# syntax=x", []),
        ("# other=x\n# syntax=x", []),
        ("# syntax=a" + " " * 60_000 + "b", [("syntax", "a" + " " * 60_000 + "b")]),
    ],
)
def test_directives_stand_first(text, expected):
    assert names(text) == expected


def test_one_of_each():
    with pytest.raises(DockerfileError, match="only one escape parser directive"):
        names("# escape=`\n# escape=`")


def test_the_escape():
    assert escape_of(list(read("# escape=`"))) == "`"
    assert escape_of([]) == "\\"
    with pytest.raises(DockerfileError, match="invalid escape token"):
        escape_of(list(read("# escape=x")))


@pytest.mark.parametrize(
    ("text", "value", "line"),
    [
        ("# syntax=a\n", "a", 1),
        ("#!/usr/bin/env x\n# syntax=a\n", "a", 2),
        ("// syntax=a\n", "a", 1),
        ('{"syntax": "a"}', "a", 1),
    ],
)
def test_files_of_other_frontends_name_theirs(text, value, line):
    found = syntax_of(text)
    assert found
    assert (found.value, found.line) == (value, line)


@pytest.mark.parametrize("text", ["FROM a", "{", "[" * 100_000, '{"syntax": 1}', "# syntax=a\n# syntax=b" * 0, ""])
def test_most_files_name_none(text):
    assert syntax_of(text) is None
