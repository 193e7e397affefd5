"""Nobody takes more than a share, all together no more than theirs, and the last descriptors are not for them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.network.acceptor import Quota, reserved


def test_one_cannot_take_what_another_needs():
    quota = Quota(each=4, in_all=6)
    assert [quota.take("greedy", 2) for _ in range(3)] == [True, True, False]
    assert quota.take("modest") and quota.take("modest")
    assert not quota.take("late"), "all are taken"
    quota.give_back("greedy", 2)
    assert quota.take("late")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 3))))
def test_what_is_given_back_is_there_again(requests):
    quota = Quota(each=5, in_all=9)
    taken = [(who, count) for who, count in requests if quota.take(who, count)]
    assert sum(count for _, count in taken) <= 9
    for who, count in taken:
        quota.give_back(who, count)
    assert [quota.take(who, 5) for who in "ab"] == [True, False] and quota.take("c", 4)


@pytest.mark.parametrize(("files", "in_all", "each"), [(1 << 20, 4096, 512), (1024, 256, 32), (64, 16, 2)])
def test_the_share_follows_from_what_the_process_may_open(files, in_all, each):
    quota = Quota.share(4, 4096, 8, lambda: files)
    assert quota.take("one", each) and not quota.take("one")
    assert not quota.take("other", in_all)
    assert all(quota.take(number, each) for number in range(7)) and not quota.take("late")


@pytest.mark.parametrize(("files", "first"), [(1024, 896), (256, 192), (1 << 20, (1 << 20) * 7 // 8)])
def test_the_last_descriptors_are_kept_for_the_operator(files, first):
    assert not reserved(first - 1, lambda: files)
    assert reserved(first, lambda: files)
