from hypothesis import given
from hypothesis import strategies as st

from husk.swarm.ca import renewal


def test_between_half_and_four_fifths_of_its_life() -> None:
    assert renewal.wait(0, 100, 0, 0.0) == 50
    assert renewal.wait(0, 100, 0, 1.0) == 80
    assert renewal.wait(0, 100, 60, 1.0) == 20
    assert renewal.wait(0, 100, 90, 0.5) == 0
    assert all(50 <= renewal.wait(0, 100, 0) <= 80 for _ in range(50))


def test_one_from_the_future_is_renewed_at_once() -> None:
    made = 172 * 86400.0
    assert renewal.wait(made, made + 90 * 86400, 0, 0.5) == 0
    assert renewal.wait(1800, 1800 + 86400, 0, 0.5) == 0, "it is good for nobody for half an hour"
    assert renewal.wait(0, 86400, 0, 0.5) > 0, "it was signed an hour ahead, and is good"


@given(st.integers(1, 10_000), st.floats(-(10**9), 10**9))
def test_tries_again_later_each_time_and_never_at_once(failures: int, left: float) -> None:
    again = renewal.wait_again(failures, left)
    assert renewal.AGAIN_SOONEST <= again <= renewal.AGAIN_LATEST
    assert again <= renewal.wait_again(failures + 1, left)
    assert again == renewal.AGAIN_SOONEST or again <= left / 4


def test_who_asks_all_the_time_comes_back_soon() -> None:
    pauses = [renewal.wait_again(failures, 90 * 86400, latest=15.0) for failures in range(1, 20)]
    assert pauses == [5.0, 10.0, *[15.0] * 17]
