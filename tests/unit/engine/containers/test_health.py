"""The state machine of a container's health, without a clock."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.engine.containers import health
from husk.engine.containers.health import SECOND
from husk.engine.model.container import Health, HealthResult
from husk.engine.model.container_config import ContainerConfig, HealthConfig

result = partial(HealthResult, start="", end="", output="")
GOOD, BAD = result(exit_code=0), result(exit_code=1)
LATE = 10**18
MS = 10**6


@pytest.mark.parametrize(
    "test, shell, expected",
    [
        (None, None, None),
        ([], None, None),
        (["NONE"], None, None),
        (["SOMETHING", "else"], None, None),
        (["CMD"], None, None),
        (["CMD", "curl", "-f"], None, ["curl", "-f"]),
        (["CMD-SHELL", "curl || exit 1"], None, ["/bin/sh", "-c", "curl || exit 1"]),
        (["CMD-SHELL", "x"], ["/bin/bash", "-ec"], ["/bin/bash", "-ec", "x"]),
    ],
)
def test_the_command(test: list[str] | None, shell: list[str] | None, expected: list[str] | None):
    check = None if test is None else HealthConfig(test=test)
    assert health.command(ContainerConfig(healthcheck=check, shell=shell)) == expected


def run(check: HealthConfig, results: list[HealthResult], ran_for: int = LATE) -> Health:
    now = Health()
    for outcome in results:
        now = health.after(check, now, outcome, ran_for)
    return now


def test_one_success_is_health():
    assert run(HealthConfig(), [BAD, BAD, GOOD]).status == "healthy"


def test_three_failures_by_default():
    assert [run(HealthConfig(), [BAD] * n).status for n in range(4)] == [
        "starting",
        "starting",
        "starting",
        "unhealthy",
    ]


def test_a_healthy_one_stays_so_until_its_retries_are_used_up():
    check = HealthConfig(retries=2)
    assert run(check, [GOOD, BAD]).status == "healthy"
    assert run(check, [GOOD, BAD, BAD]).status == "unhealthy"
    assert run(check, [GOOD, BAD, GOOD, BAD]).status == "healthy"


def test_failures_within_the_start_period_do_not_count():
    check = HealthConfig(retries=1, start_period=10 * SECOND)
    assert run(check, [BAD] * 9, 9 * SECOND).failing_streak == 0
    assert run(check, [BAD], 10 * SECOND).status == "unhealthy"


def test_after_a_success_the_start_period_is_over():
    assert run(HealthConfig(retries=1, start_period=10 * SECOND), [GOOD, BAD], SECOND).status == "unhealthy"


@given(st.lists(st.sampled_from([0, 1, 2, -1, 137])), st.integers(0, 5))
def test_streak_and_log_follow_the_results(codes: list[int], retries: int):
    now = run(HealthConfig(retries=retries), [result(exit_code=code) for code in codes])
    streak = 0
    for code in reversed(codes):
        if code == 0:
            break
        streak += 1
    assert now.failing_streak == streak
    assert [entry.exit_code for entry in now.log] == codes[-5:]
    assert (now.status == "unhealthy") == (streak >= (retries or 3))


def test_delays():
    check = HealthConfig(interval=7 * MS, start_interval=2 * MS, start_period=100)
    assert health.next_delay(check, Health(), 99) == 2 * MS
    assert health.next_delay(check, Health(), 100) == 7 * MS
    assert health.next_delay(check, Health(status="healthy"), 0) == 7 * MS
    assert health.next_delay(HealthConfig(), Health(), 0) == 30 * SECOND
    assert health.next_delay(HealthConfig(start_period=1), Health(), 0) == 5 * SECOND


def test_times_that_no_client_could_ask_for_are_as_if_not_given():
    for odd in (1, MS - 1, -1, -(10**15)):
        check = HealthConfig(interval=odd, timeout=odd, start_interval=odd, start_period=100, retries=-1)
        assert health.next_delay(check, Health(), 0) == 5 * SECOND
        assert health.next_delay(check, Health(), 100) == health.timeout_of(check) == 30 * SECOND
        assert health.after(check, Health(), BAD, 200).status == "starting"


def test_tests_have_a_pause_between_them_of_a_second_at_most():
    check = HealthConfig(interval=MS)
    assert health.next_delay(check, Health(), 0, took=40 * MS) == 40 * MS
    assert health.next_delay(check, Health(), 0, took=40 * SECOND) == SECOND


def test_begin_and_stop():
    tested = ContainerConfig(healthcheck=HealthConfig(test=["CMD", "true"]))
    assert health.begin(ContainerConfig(), None) is None
    assert health.begin(tested, Health(status="unhealthy", failing_streak=4, log=[BAD])) == Health(log=[BAD])
    assert health.stop(Health(status="healthy")) == Health(status="unhealthy")
    assert health.stop(None) is None


@pytest.mark.parametrize(
    "ns, shown",
    [
        (SECOND, "1s"), (1_500_000_000, "1.5s"), (60 * SECOND, "1m0s"), (3_661 * SECOND, "1h1m1s"),
        (3600 * SECOND, "1h0m0s"), (500_000_000, "500ms"), (1_500_000, "1.5ms"),
    ],
)  # fmt: skip
def test_durations_as_go_shows_them(ns: int, shown: str):
    assert health.shown_duration(ns) == shown


def test_output_is_cut():
    assert health.shown_output(b"a" * 4096) == "a" * 4096
    assert health.shown_output(b"a" * 4097) == "a" * 4096 + "..."
    assert health.timeout_message(2 * SECOND, "") == "Health check exceeded timeout (2s)"
