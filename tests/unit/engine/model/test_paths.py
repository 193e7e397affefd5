"""Paths inside containers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.engine.model.paths import check_length, clean
from husk.errors import InvalidParameter


@given(st.lists(st.sampled_from(["", ".", "..", "a", "b"])))
def test_a_clean_path_is_absolute_and_stays_clean(parts: list[str]) -> None:
    path = clean("/" + "/".join(parts))
    assert path.startswith("/") and not path.startswith("//")
    assert not set(path.split("/")[1:]) & {".", ".."}
    assert clean(path) == path


@pytest.mark.parametrize("path", ["/" + "a" * 256, "/a" * 2048, "/" + "ä" * 128])
def test_a_path_longer_than_the_kernel_takes_is_refused(path: str) -> None:
    with pytest.raises(InvalidParameter, match="file name too long"):
        check_length(path)


@pytest.mark.parametrize("path", ["", "/", "/" + "a" * 255, "/a" * 2047])
def test_a_path_that_the_kernel_takes_is_taken(path: str) -> None:
    check_length(path)
