import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.builder.dockerfile.errors import DockerfileError, suggestion
from husk.builder.dockerfile.rules import Span


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("CPY", " (did you mean COPY?)"),
        ("copy", " (did you mean COPY?)"),
        ("rum", " (did you mean RUN?)"),
        ("xyz", ""),
        ("", ""),
    ],
)
def test_suggestions(word, hint):
    assert suggestion(word, ["COPY", "RUN"]) == hint


def test_an_error_keeps_its_first_place():
    error = DockerfileError("no").at(Span(2, 3), unreadable=True).at(Span(1, 9))
    assert str(error) == "dockerfile parse error on line 2: no"
    assert str(DockerfileError("no")) == "no"


def test_only_what_cannot_be_read_is_an_error_of_parsing():
    assert str(DockerfileError("no", plain=True).at(Span(2, 3), unreadable=True)) == "no"
    error = DockerfileError("no").at(Span(2, 3))
    assert (str(error), error.span) == ("no", Span(2, 3))


@given(st.text("ab", max_size=6), st.text("ab", max_size=6))
def test_a_suggestion_is_one_or_two_letters_away(word, known):
    assert bool(suggestion(word, [known])) == (word != known and distance(word, known) < 3)


def distance(first, second):
    """As it is defined."""
    if not first or not second:
        return len(first or second)
    rest = distance(first[1:], second[1:]) + (first[0] != second[0])
    return min(rest, distance(first[1:], second) + 1, distance(first, second[1:]) + 1)


def test_long_names_are_compared_in_linear_time():
    """A table of all letters by all letters would take hours."""
    assert suggestion("a" * 100_000, ["a" * 99_999 + "b"]).startswith(" (did you mean aaa")
    assert suggestion("a" * 100_000, ["b" * 100_000]) == ""


def test_long_messages_are_shortened():
    assert len(DockerfileError("x" * 1_000_000).message) < 5000


def test_among_very_many_names_none_is_suggested():
    assert suggestion("abd", ["abc", *map(str, range(2000))]) == ""
