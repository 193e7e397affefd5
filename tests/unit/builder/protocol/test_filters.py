"""Filters as clients of BuildKit write them."""

import pytest

from husk.builder.protocol.control import read_filters
from husk.errors import InvalidParameter


def test_terms_of_one_text_belong_together_and_texts_are_alternatives() -> None:
    first, second = read_filters(['type==regular,id~="abc",shared', "description=x y"])
    assert (first.get("type"), first.get("id"), first.get("shared")) == (["regular"], ["abc"], ["true"])
    assert second.get("description") == ["x y"]


def test_no_filter_means_everything_that_is_old_enough() -> None:
    (only,) = read_filters([], unused_for=90 * 10**9)
    assert only.get("until") == ["90s"]
    (only,) = read_filters([])
    assert only.get("until") == []


@pytest.mark.parametrize("texts", [["id=a"] * 101, ["id=a," * 4000], ["," * 20_000]])
def test_filters_are_so_many_and_so_long(texts: list[str]) -> None:
    with pytest.raises(InvalidParameter, match="more than 100 filters"):
        read_filters(texts)


@pytest.mark.parametrize("text", ["colour==red", "==", "a b"])
def test_what_is_no_filter_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameter, match="invalid filter"):
        read_filters([text])
