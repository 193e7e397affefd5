import pytest

from husk.builder.dockerfile import syntax
from husk.builder.dockerfile.syntax import Syntax


@pytest.mark.parametrize(
    ("text", "arguments", "found"),
    [
        ("FROM x", {}, None),
        ("# syntax=a/b:1 --flag\nFROM x", {}, Syntax("a/b:1", "a/b:1 --flag", 1)),
        ("#!/x\n// syntax = a/b\n", {}, Syntax("a/b", "a/b", 2)),
        ('{"syntax": "a/b"}', {}, Syntax("a/b", "a/b", 1)),
        ('{"syntax": " "}', {}, None),
        ("# syntax=a/b", {"BUILDKIT_SYNTAX": " c/d e "}, Syntax("c/d", "c/d e")),
        ("# syntax=a/b", {"BUILDKIT_SYNTAX": ""}, Syntax("a/b", "a/b", 1)),
    ],
)
def test_which_frontend_is_asked_for(text, arguments, found):
    assert syntax.asked_for(text, arguments) == found


@pytest.mark.parametrize(
    ("image", "own"),
    [
        ("docker/dockerfile", True),
        ("docker/dockerfile:1", True),
        ("docker.io/docker/dockerfile-upstream:master", True),
        ("docker/dockerfile@sha256:" + "0" * 64, True),
        ("example.com/docker/dockerfile", False),
        ("docker/other", False),
        ("NOT//A NAME", False),
    ],
)
def test_which_of_them_is_our_own(image, own):
    assert syntax.is_own(image) == own


@pytest.mark.parametrize(
    ("tag", "told"),
    [(":1", 0), ("", 0), (":1.20", 0), (":1.20.7", 0), (":labs", 0), (":1.21", 1), (":1.99-labs", 1), (":2", 1)],
)
def test_a_newer_version_is_told_of(tag, told):
    assert bool(syntax.notice(f"docker/dockerfile{tag}")) == bool(told)
