import fnmatch
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.builder.dockerfile.patterns import replaced, without_prefix, without_suffix

letters = st.text("ab", max_size=8)
patterns = st.text("ab*?", max_size=6)


@pytest.mark.parametrize(
    ("text", "pattern", "everywhere", "result"),
    [
        ("aaa", "a", False, "xaa"),
        ("aaa", "a", True, "xxx"),
        ("abc", "*", True, "x"),
        ("abc", "", True, "xaxbxcx"),
        ("", "", True, "x"),
        ("a\nb", "*", True, "x\nx"),
        ("a.b.c", "b*", False, "a.x"),
        ("abab", "a?", True, "xx"),
        ("abc", "d", True, "abc"),
    ],
)
def test_replacing(text, pattern, everywhere, result):
    assert replaced(text, pattern, "x", everywhere=everywhere) == result


def test_escapes_are_letters():
    assert without_prefix("*ab", r"\*", longest=False) == "ab"
    assert without_suffix("ab?", r"\?", longest=False) == "ab"
    assert without_prefix("/}x", r"\/\}", longest=False) == "x"


@given(letters, patterns)
def test_prefixes_are_what_a_search_through_all_finds(text, pattern):
    ends = [end for end in range(len(text) + 1) if fnmatch.fnmatchcase(text[:end], pattern)]
    assert without_prefix(text, pattern, longest=False) == text[min(ends) if ends else 0 :]
    assert without_prefix(text, pattern, longest=True) == text[max(ends) if ends else 0 :]


@given(letters, patterns)
def test_suffixes_are_what_a_search_through_all_finds(text, pattern):
    starts = [start for start in range(len(text) + 1) if fnmatch.fnmatchcase(text[start:], pattern)]
    assert without_suffix(text, pattern, longest=False) == text[: max(starts) if starts else len(text)]
    assert without_suffix(text, pattern, longest=True) == text[: min(starts) if starts else len(text)]


@given(letters, patterns)
def test_the_first_replacement_is_that_of_a_regular_expression(text, pattern):
    expression = pattern.replace("?", ".").replace("*", ".*")
    assert replaced(text, pattern, "-", everywhere=False) == re.sub(expression, "-", text, count=1)


def test_a_hostile_pattern_takes_no_time():
    text = "a" * 50_000
    assert without_prefix(text, "*a" * 12 + "b", longest=True) == text
    assert without_suffix(text, "b" + "a*" * 12, longest=True) == text
    assert replaced(text, "a*a*a*a*a*a*b", "x", everywhere=True) == text
