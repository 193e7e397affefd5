"""Whiteout names."""

from hypothesis import given
from hypothesis import strategies as st

from husk.storage.tar.whiteouts import is_overlay_xattr, whiteout_name, whiteout_target


@given(st.binary(min_size=1).filter(lambda name: b"/" not in name and not name.startswith(b".wh.")))
def test_a_whiteout_names_what_it_removes(name: bytes):
    assert whiteout_target(whiteout_name(name)) == name


@given(st.binary(min_size=1).filter(lambda name: b"/" not in name))
def test_only_whiteouts_have_a_target(name: bytes):
    target = whiteout_target(name)
    if target is None:
        assert not name.startswith(b".wh.") or name.startswith(b".wh..wh.")
    else:
        assert whiteout_name(target) == name


def test_ordinary_and_meta_names_are_no_whiteouts_of_a_name():
    assert whiteout_target(b"file") is None
    assert whiteout_target(b".wh..wh..opq") is None
    assert whiteout_target(b".wh..wh.plnk") is None


def test_overlay_attributes_are_known_and_others_are_not():
    assert is_overlay_xattr("trusted.overlay.redirect")
    assert is_overlay_xattr("user.overlay.opaque")
    assert not is_overlay_xattr("security.capability")
    assert not is_overlay_xattr("user.overlayish")
