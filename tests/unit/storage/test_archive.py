"""Chain ids and whiteout names."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from husk.storage.archive import chain_id, is_overlay_xattr, whiteout_name, whiteout_target

A, B = ("sha256:" + hashlib.sha256(text).hexdigest() for text in (b"a", b"b"))


def test_the_first_layer_is_named_by_its_diff_id():
    assert chain_id("", A) == A


def test_a_further_layer_is_named_by_the_hash_of_its_parent_and_itself():
    assert chain_id(A, B) == "sha256:" + hashlib.sha256(f"{A} {B}".encode()).hexdigest()


@given(st.binary(min_size=1).filter(lambda name: b"/" not in name and not name.startswith(b".wh.")))
def test_a_whiteout_names_what_it_removes(name: bytes):
    assert whiteout_target(whiteout_name(name)) == name


def test_ordinary_and_meta_names_are_no_whiteouts_of_a_name():
    assert whiteout_target(b"file") is None
    assert whiteout_target(b".wh..wh..opq") is None
    assert whiteout_target(b".wh..wh.plnk") is None


def test_overlay_attributes_are_known_and_others_are_not():
    assert is_overlay_xattr("trusted.overlay.redirect")
    assert is_overlay_xattr("user.overlay.opaque")
    assert not is_overlay_xattr("security.capability")
    assert not is_overlay_xattr("user.overlayish")
