"""The words of stores: what a transaction may be, and the version in a body."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.errors import Conflict, InvalidParameter, Unavailable
from husk.swarm.state.transactions import (
    MOST_BYTES,
    MOST_STEPS,
    Check,
    ClusterRecord,
    Delete,
    Put,
    Stale,
    StoreUnavailable,
    batches,
    check_name,
    check_steps,
    version_in,
    with_version,
)


def test_a_record_is_once_in_a_transaction():
    check_steps([Put("a", "1", b"{}"), Delete("a", "2"), Check("b", "1", 0)])
    with pytest.raises(InvalidParameter, match="a 1 is twice"):
        check_steps([Put("a", "1", b"{}"), Check("a", "1", 0)])


@pytest.mark.parametrize(("kind", "key"), [("", "a"), ("a", ""), ("a/b", "c"), ("a\0", "b"), ("a", "b\0")])
def test_names_that_cannot_be_told_from_others(kind: str, key: str):
    with pytest.raises(InvalidParameter, match="no record can have"):
        check_name(kind, key)


def test_a_key_may_have_any_other_form():
    check_name("node", "x/y ü")


def test_the_version_in_a_body():
    assert version_in(b"{}") == 0
    body = with_version(b'{"id":"x","version":3,"nested":{"version":5}}', 12)
    assert version_in(body) == 12 and msgspec.json.decode(body)["nested"] == {"version": 5}
    for bad in (b"", b"[]", b"x"):
        with pytest.raises(InvalidParameter, match="JSON object"):
            with_version(bad, 1)


def test_errors_say_what_to_do():
    stale = Stale([("service", "a"), ("task", "b")])
    assert isinstance(stale, Conflict) and "service a, task b" in stale.message
    assert isinstance(StoreUnavailable("gone", unknown=True), Unavailable)
    assert ClusterRecord("a", "b", b"", 1).name == ("a", "b")


@given(st.lists(st.integers(0, 30)), st.integers(1, 5), st.integers(1, 40))
def test_all_come_in_order_within_both_limits(sizes: list[int], steps: int, most: int):
    found = list(batches(sizes, lambda size: size, steps=steps, most=most))
    assert [size for some in found for size in some] == sizes
    assert all(some and len(some) <= steps and (sum(some) <= most or len(some) == 1) for some in found)


@pytest.mark.parametrize(("count", "size", "expected"), [(250, 1, 3), (4, MOST_BYTES // 2, 2), (2, 2 * MOST_BYTES, 2)])
def test_the_limits_are_those_of_a_transaction(count: int, size: int, expected: int):
    assert MOST_STEPS <= 128, "etcd takes no more"
    assert len(list(batches(range(count), lambda _: size))) == expected
