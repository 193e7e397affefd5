"""Chain ids."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from husk.storage.layers.chain import chain_id

A, B = ("sha256:" + hashlib.sha256(text).hexdigest() for text in (b"a", b"b"))


def test_the_first_layer_is_named_by_its_diff_id():
    assert chain_id("", A) == A


def test_a_further_layer_is_named_by_the_hash_of_its_parent_and_itself():
    assert chain_id(A, B) == "sha256:" + hashlib.sha256(f"{A} {B}".encode()).hexdigest()


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
