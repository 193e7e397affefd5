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


digests = st.binary(min_size=32, max_size=32).map(lambda raw: f"sha256:{raw.hex()}")


@given(st.lists(digests, min_size=1, max_size=5), st.lists(digests, min_size=1, max_size=5))
def test_a_chain_id_stands_for_the_layers_and_their_order(one: list[str], other: list[str]):
    def chain(diff_ids: list[str]) -> str:
        parent = ""
        for diff_id in diff_ids:
            parent = chain_id(parent, diff_id)
        return parent

    assert (chain(one) == chain(other)) == (one == other)
    assert chain(one + other) != chain(one)


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
