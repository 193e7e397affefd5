"""Patterns of paths and of single names. What a list of them leaves out is tested where `.dockerignore` is read."""

import pytest

from husk.text.globs import BadPattern, Patterns, has_wildcards, name_pattern


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("*", "", True),
        ("*.py", "a.py", True),
        ("*.py", "a.pyc", False),
        ("a?c", "abc", True),
        ("[a-c]*", "banana", True),
        ("[^a-c]*", "banana", False),
        (r"\*", "*", True),
        (r"\*", "a", False),
        ("a*b*c", "a1b2b3c", True),
        ("a", "a\n", False),
        ("[+--]", ",", True),
        (r"[\--a]", "0", True),
        ("[+-.--]", "-", True),
        ("[a||b&&c~~d]", "|", True),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_name_matches_as_a_whole(pattern: str, name: str, matches: bool):
    assert bool(name_pattern(pattern).match(name)) is matches


@pytest.mark.parametrize("pattern", ["[", "[]", "a\\", "[z-a]"])
def test_patterns_that_mean_nothing(pattern: str):
    with pytest.raises(BadPattern):
        name_pattern(pattern)


@pytest.mark.parametrize(
    ("part", "has"), [("a", False), ("*", True), (r"\*", False), (r"\\*", True), ("a[b", True), ("a?", True)]
)
def test_escaped_wildcards_are_none(part: str, has: bool):
    assert has_wildcards(part) is has


def test_the_last_pattern_that_matches_decides():
    patterns = Patterns(["a", "!a/b", "a/b/c"])
    assert patterns.brings_back
    assert [patterns.matches(path) for path in ("a", "a/x", "a/b", "a/b/c", "a/b/d")] == [
        True, True, False, True, False,
    ]  # fmt: skip
