"""Restart policies, as dockerd reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.engine.containers.config.restart_policy import (
    FIRST_DELAY,
    LONGEST_DELAY,
    STABLE_AFTER,
    next_delay,
    should_restart,
    should_start_with_daemon,
)
from husk.engine.model.container_config import RestartPolicy

policies = st.builds(
    RestartPolicy,
    name=st.sampled_from(["", "no", "always", "unless-stopped", "on-failure"]),
    maximum_retry_count=st.integers(0, 3),
)


@given(policies, st.integers(0, 255), st.integers(0, 5))
def test_a_stop_that_somebody_asked_for_is_never_undone(policy: RestartPolicy, code: int, restarts: int) -> None:
    assert not should_restart(policy, code, restarts, stopped_by_user=True)


@pytest.mark.parametrize(
    ("name", "code", "again"),
    [
        ("", 1, False), ("no", 1, False), ("always", 0, True), ("always", 1, True), ("unless-stopped", 0, True),
        ("on-failure", 0, False), ("on-failure", 1, True),
    ],
)  # fmt: skip
def test_a_policy_looks_at_the_exit_code(name: str, code: int, again: bool) -> None:
    assert should_restart(RestartPolicy(name=name), code, 100, stopped_by_user=False) is again


@pytest.mark.parametrize(("restarts", "again"), [(0, True), (1, True), (2, False), (3, False)])
def test_a_number_of_retries_is_kept(restarts: int, again: bool) -> None:
    policy = RestartPolicy(name="on-failure", maximum_retry_count=2)
    assert should_restart(policy, 1, restarts, stopped_by_user=False) is again


@pytest.mark.parametrize(
    ("name", "was_running", "code", "stopped", "starts"),
    [
        ("no", True, 1, False, False),
        ("always", False, 0, True, True),
        ("unless-stopped", False, 0, False, True),
        ("unless-stopped", False, 0, True, False),
        ("on-failure", True, 1, False, True),
        ("on-failure", True, 0, False, False),
        ("on-failure", False, 1, False, False),
    ],
)
def test_with_the_daemon_start_those_who_should(
    name: str, was_running: bool, code: int, stopped: bool, starts: bool
) -> None:
    assert should_start_with_daemon(RestartPolicy(name=name), was_running, code, stopped) is starts


def test_the_delay_doubles_up_to_a_minute() -> None:
    delays = [0.0]
    for _ in range(12):
        delays.append(next_delay(delays[-1], ran_for=0))
    assert delays[1:5] == [0.1, 0.2, 0.4, 0.8]
    assert delays[-1] == LONGEST_DELAY


@given(st.floats(0, LONGEST_DELAY))
def test_a_run_that_held_begins_anew(previous: float) -> None:
    assert next_delay(previous, STABLE_AFTER) == FIRST_DELAY
