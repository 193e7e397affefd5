"""Names of volumes become names of directories: nothing else gets through."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.engine.model.volume import ANONYMOUS_LABEL, Volume, check_name
from husk.errors import InvalidParameter


@pytest.mark.parametrize("name", ["ab", "a.", "A-b_c.d", "0" * 64, "a" * 255])
def test_names(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize("name", ["", "..", ".a", "-a", "_a", "a/b", "a b", "/a", "a\0b", "a\n", "ä1", "a" * 256])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(InvalidParameter, match="includes invalid characters for a local volume name"):
        check_name(name)


def test_one_letter_is_too_short() -> None:
    with pytest.raises(InvalidParameter, match="at least two"):
        check_name("a")


@given(st.text())
def test_a_name_stays_in_its_directory(name: str) -> None:
    try:
        check_name(name)
    except InvalidParameter:
        return
    assert name.isascii() and "/" not in name and not name.startswith(".") and len(name) > 1


def test_the_label_says_that_it_has_no_name_of_its_own() -> None:
    assert Volume(name="x", created="", labels={ANONYMOUS_LABEL: ""}).anonymous
    assert not Volume(name="x", created="").anonymous
