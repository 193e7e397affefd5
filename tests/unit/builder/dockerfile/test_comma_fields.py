"""One line of CSV becomes its fields."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.builder.dockerfile.comma_fields import BadFields, comma_fields


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("", []),
        ("a", ["a"]),
        ("a,,b=c", ["a", "", "b=c"]),
        ('type=cache,"target=/a,b"', ["type=cache", "target=/a,b"]),
        ('"say ""it"""', ['say "it"']),
    ],
)
def test_fields(text: str, fields: list[str]) -> None:
    assert comma_fields(text) == fields


@pytest.mark.parametrize("text", ['"a', '"a"b', "a\nb"])
def test_lines_that_are_none(text: str) -> None:
    with pytest.raises(BadFields):
        comma_fields(text)


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), min_size=1), min_size=1))
def test_what_was_written_is_read_again(fields: list[str]) -> None:
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(fields)
    assert comma_fields(out.getvalue()) == fields
