import contextlib
import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.text.dockerignore import Ignore, read
from husk.text.globs import BadPattern


def leaves_out(pattern, path):
    return Ignore([pattern]).leaves_out(path)


@pytest.mark.parametrize(
    ("pattern", "path", "out"),
    [
        ("a", "a", True),
        ("a", "b", False),
        ("a", "ab", False),
        ("a", "a/b/c", True),
        ("a/b", "a", False),
        ("a/b", "a/b", True),
        ("a/b", "x/a/b", False),
        ("*", "a", True),
        ("*", "a/b", True),
        ("*.py", "x.py", True),
        ("*.py", "d/x.py", False),
        ("*.py", "x.pyc", False),
        ("*/x.py", "d/x.py", True),
        ("*/x.py", "d/e/x.py", False),
        ("a?", "ab", True),
        ("a?", "a", False),
        ("a?c", "a/c", False),
        ("[a-c]x", "bx", True),
        ("[a-c]x", "dx", False),
        ("[^a-c]x", "dx", True),
        ("[^a]x", "/x", False),
        (r"a\*b", "a*b", True),
        (r"a\*b", "axb", False),
        ("**", "a/b", True),
        ("**/x", "x", True),
        ("**/x", "a/x", True),
        ("**/x", "a/b/x", True),
        ("**/x", "a/bx", False),
        ("**/x/y", "a/x/z/x/y", True),
        ("a/**", "a", False),
        ("a/**", "a/b", True),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/x/y/b", True),
        ("a/**/b", "a/x/yb", False),
        ("a/**/**/b", "a/b", True),
        ("**/a/**/b/*.c", "x/a/y/z/b/q.c", True),
        ("**/*.c", "x/y.c", True),
        ("a**b", "ab", True),
        ("a**b", "a/x/b", True),
        ("a**b", "axb", False),
        ("a**", "abc/d", True),
        (".git", ".git/config", True),
        ("a.b", "axb", False),
        ("a(b", "a(b", True),
    ],
)
def test_a_pattern(pattern, path, out):
    assert leaves_out(pattern, path) is out


def test_the_last_line_that_matches_decides():
    ignore = Ignore(["*", "!keep", "keep/but-not-this"])
    assert ignore.leaves_out("other")
    assert not ignore.leaves_out("keep/x")
    assert ignore.leaves_out("keep/but-not-this")


def test_directories_are_skipped_only_if_nothing_in_them_can_come_back():
    assert Ignore(["node_modules"]).may_skip_directory("node_modules")
    assert not Ignore(["a", "!a/b"]).may_skip_directory("a")
    assert not Ignore(["a"]).may_skip_directory("b")


def test_reading_a_file():
    text = "\ufeff# comment\n\n  a/ \n/b\n./c/../d\n!  e\n#f\n /  \n!"
    assert read(text) == ["a", "b", "d", "!e", "/", "!"]


@pytest.mark.parametrize("pattern", ["!", "[", "a[b", "[]", "[^]", "a\\", "[b-a]", "a**" + "*a" * 9])
def test_patterns_that_are_none(pattern):
    with pytest.raises(BadPattern):
        Ignore([pattern])


def test_a_hostile_pattern_takes_no_time():
    name = "a" * 250
    path = "/".join([name] * 12)
    assert not leaves_out("*a" * 20 + "b", path)
    assert not leaves_out("**/*a*a/" * 10 + "b", path)


def _matches(pattern: list[str], path: list[str]) -> bool:
    """The meaning, told as slowly and plainly as can be: some beginning of the path is the pattern."""
    if not pattern:
        return True
    if pattern[0] == "**":
        if len(pattern) == 1:
            return bool(path)
        return any(_matches(pattern[1:], path[skipped:]) for skipped in range(len(path) + 1))
    if not path:
        return False
    return _part_matches(pattern[0], path[0]) and _matches(pattern[1:], path[1:])


def _part_matches(pattern: str, part: str) -> bool:
    if not pattern:
        return not part
    if pattern[0] == "*":
        return any(_part_matches(pattern[1:], part[skipped:]) for skipped in range(len(part) + 1))
    return bool(part) and pattern[0] in (part[0], "?") and _part_matches(pattern[1:], part[1:])


parts = st.one_of(st.just("**"), st.text("ab*?", min_size=1, max_size=4).filter(lambda part: "**" not in part))


@given(st.lists(parts, min_size=1, max_size=5), st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=6))
def test_patterns_mean_what_they_say(pattern, path):
    pattern = [part for part, _ in itertools.groupby(pattern)] if "**" in pattern else pattern
    assert leaves_out("/".join(pattern), "/".join(path)) is _matches(pattern, path)


_PARTS = st.text("ab", min_size=1, max_size=2)
_PATHS = st.lists(_PARTS, min_size=1, max_size=4).map("/".join)
_PATTERNS = st.tuples(
    st.booleans(), st.lists(st.one_of(_PARTS, st.sampled_from(["*", "?", "**", "a*", "[ab]"])), min_size=1, max_size=3)
).map(lambda made: "!" * made[0] + "/".join(made[1]))


def expression(pattern: str) -> str:
    """Return an expression for a pattern, as slow as can be: below a match everything matches."""
    parts = {"**": "(?:[^/]+(?:/[^/]+)*)", "*": "[^/]*", "?": "[^/]"}
    found = "/".join(parts.get(part, part.replace("*", "[^/]*")) for part in pattern.split("/"))
    # Any number of parts may be none at all.
    found = found.replace(parts["**"] + "/", f"(?:{parts['**']}/)?")
    return found + "(?:/.*)?"


@given(st.lists(_PATTERNS, max_size=4), _PATHS)
def test_the_last_pattern_that_matches_decides(lines, path):
    said = False
    for line in lines:
        pattern = line.removeprefix("!")
        if pattern.endswith("/**"):
            return  # whether it means the directory itself, too, is another question
        if re.fullmatch(expression(pattern), path):
            said = not line.startswith("!")
    assert Ignore(read("\n".join(lines))).leaves_out(path) == said


@given(st.text(max_size=60))
def test_any_file_is_read_or_refused(text):
    with contextlib.suppress(BadPattern):
        Ignore(read(text)).leaves_out("a/b")
