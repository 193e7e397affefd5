"""Patterns that are compiled late do what `re` does."""

import re

import pytest

from husk.text.patterns import pattern


def test_a_late_pattern_finds_what_a_compiled_one_finds() -> None:
    late, known = pattern(r"(a+)b", re.IGNORECASE), re.compile(r"(a+)b", re.IGNORECASE)
    for text in ("xAAby", "b", ""):
        assert late.findall(text) == known.findall(text)
        assert bool(late.fullmatch(text)) == bool(known.fullmatch(text))
        assert late.sub("-", text) == known.sub("-", text)
    assert late.flags == known.flags


def test_bytes_are_taken_too() -> None:
    found = pattern(rb"\d+").search(b"a12")
    assert found is not None and found[0] == b"12"


def test_it_is_compiled_once_and_not_before_it_is_used() -> None:
    wrong = pattern("(")
    with pytest.raises(re.error):
        wrong.match("x")
    late = pattern("a")
    assert late.match is late.match
