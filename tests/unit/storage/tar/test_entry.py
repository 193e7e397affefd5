"""Names of entries, made relative to the root or refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.storage.tar.entry import BLOCK, TarError, clean_name, padding


@pytest.mark.parametrize(
    ("name", "clean"),
    [
        (b"a/b", b"a/b"),
        (b"/etc/passwd", b"etc/passwd"),
        (b"./a/", b"a"),
        (b"./", b""),
        (b".", b""),
        (b"/", b""),
        (b"a//b/./c", b"a/b/c"),
        (b"a/../b", b"b"),
        (b"...", b"..."),
        (b"a/..b", b"a/..b"),
        (b".wh.x", b".wh.x"),
    ],
)
def test_names_become_relative_to_the_root(name: bytes, clean: bytes):
    assert clean_name(name) == clean


@pytest.mark.parametrize("name", [b"..", b"../a", b"/../a", b"a/../../b", b"./../x", b"a/b/../../../c"])
def test_names_that_leave_the_root_are_refused(name: bytes):
    with pytest.raises(TarError, match="outside"):
        clean_name(name)


@given(st.lists(st.sampled_from([b"a", b"..", b".", b"", b"..a", b".wh.b"])))
def test_a_clean_name_never_has_a_part_that_moves(parts: list[bytes]):
    try:
        clean = clean_name(b"/".join(parts))
    except TarError:
        return
    assert not clean or not set(clean.split(b"/")) & {b"", b".", b".."}


@given(st.integers(0, 1 << 40))
def test_padding_fills_the_last_block(size: int):
    assert 0 <= padding(size) < BLOCK
    assert (size + padding(size)) % BLOCK == 0
