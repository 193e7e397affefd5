"""Batches that are written or sent at once are bounded in pieces and in bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.swarm.state.batches import MOST_BYTES, MOST_STEPS, batches


@given(st.lists(st.integers(0, 30)), st.integers(1, 5), st.integers(1, 40))
def test_all_come_in_order_within_both_limits(sizes: list[int], steps: int, most: int):
    found = list(batches(sizes, lambda size: size, steps=steps, most=most))
    assert [size for some in found for size in some] == sizes
    assert all(some and len(some) <= steps and (sum(some) <= most or len(some) == 1) for some in found)


@pytest.mark.parametrize(("count", "size", "expected"), [(250, 1, 3), (4, MOST_BYTES // 2, 2), (2, 2 * MOST_BYTES, 2)])
def test_the_limits_are_those_of_a_transaction(count: int, size: int, expected: int):
    assert MOST_STEPS <= 128, "etcd takes no more"
    assert len(list(batches(range(count), lambda _: size))) == expected
