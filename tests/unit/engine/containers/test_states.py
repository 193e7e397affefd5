"""States of containers: every transition that there is, and no other."""

import asyncio
from collections.abc import Callable
from typing import Any, cast, get_args
from unittest.mock import Mock

import pytest

from husk.aio.tasks import Tasks
from husk.engine.containers import states
from husk.engine.model.container import Health, State, Status
from husk.errors import SystemFault

THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"

STEPS = {
    "start": (lambda state: states.started(state, NOW, None), {"created", "exited", "restarting"}, "running"),
    "pause": (states.paused, {"running"}, "paused"),
    "thaw": (states.thawed, {"paused"}, "running"),
    "end": (
        lambda state: states.ended(state, NOW, 3, "", oom_killed=False, again=False),
        {"running", "paused"},
        "exited",
    ),
    "end for another run": (
        lambda state: states.ended(state, NOW, 3, "", oom_killed=False, again=True),
        {"running", "paused"},
        "restarting",
    ),
    "give up": (states.given_up, {"restarting"}, "exited"),
    "remove": (states.removing, {"created", "exited", "dead", "removing"}, "removing"),
    "fail for another try": (
        lambda state: states.failed(state, 127, "no", again=True, cut_off=False),
        {"created", "exited", "restarting"},
        "restarting",
    ),
}


@pytest.mark.parametrize("before", get_args(Status))
@pytest.mark.parametrize("step", STEPS)
def test_each_step_leads_from_the_states_of_the_table_and_from_no_other(step: str, before: Status) -> None:
    move, possible, after = STEPS[step]
    state = State(status=before, started_at=THEN)
    if before in possible:
        assert move(state).status == after
    else:
        with pytest.raises(SystemFault, match=f'cannot go from "{before}"'):
            move(state)
    assert state == State(status=before, started_at=THEN)


@pytest.mark.parametrize(
    ("before", "cut_off", "after"),
    [
        ("created", False, "created"),
        ("created", True, "created"),
        ("exited", False, "exited"),
        ("exited", True, "exited"),
        ("restarting", False, "exited"),
        ("restarting", True, "restarting"),
    ],
)
def test_a_start_that_fails_ends_where_it_began_or_gives_the_next_run_up(
    before: Status, cut_off: bool, after: Status
) -> None:
    state = State(status=before, pid=7, exit_code=1, started_at=THEN, oom_killed=True)
    found = states.failed(state, 127, "no such file", again=False, cut_off=cut_off)
    assert found == State(status=after, exit_code=127, error="no such file", started_at=THEN)


def test_a_start_forgets_the_last_end_and_keeps_its_time() -> None:
    last = State(status="exited", pid=7, exit_code=1, error="no", oom_killed=True, started_at=THEN, finished_at=THEN)
    health = Health()
    assert states.started(last, NOW, health) == State(
        status="running", pid=7, started_at=NOW, finished_at=THEN, health=health
    )


def test_an_end_keeps_what_was_told_of_lack_of_memory() -> None:
    told = State(status="running", pid=7, oom_killed=True, started_at=THEN)
    after = states.ended(told, NOW, 137, "", oom_killed=False, again=False)
    assert after == State(status="exited", exit_code=137, oom_killed=True, started_at=THEN, finished_at=NOW)


def alive(doomed: bool = False) -> states.Alive:
    return states.Alive(cast(Any, Mock()), doomed=doomed)


LIVES: dict[str, Callable[[], states.Life]] = {
    "settled": lambda: states.SETTLED,
    "unsettled": lambda: states.UNSETTLED,
    "unsettled and uncleared": lambda: states.Unsettled(uncleared=True),
    "uncleared": states.Uncleared,
    "discarded": lambda: states.DISCARDED,
    "alive": alive,
    "waiting": lambda: states.Waiting(cast(Any, Mock()), states.SETTLED),
}


@pytest.mark.parametrize("name", LIVES)
def test_a_start_begins_where_nothing_of_a_former_run_is_in_its_way(name: str) -> None:
    if name in ("settled", "unsettled", "discarded"):
        assert states.starting(LIVES[name]()) == states.UNSETTLED
    else:
        with pytest.raises(SystemFault, match="cannot be started"):
            states.starting(LIVES[name]())


@pytest.mark.parametrize("name", LIVES)
def test_a_process_comes_to_one_that_is_not_settled(name: str) -> None:
    supervised = cast(Any, Mock())
    if name.startswith("unsettled"):
        assert states.begun(LIVES[name](), supervised) == states.Alive(supervised)
    else:
        with pytest.raises(SystemFault, match="cannot get a process"):
            states.begun(LIVES[name](), supervised)


@pytest.mark.parametrize("name", LIVES)
def test_nothing_is_found_of_one_that_a_former_daemon_knew(name: str) -> None:
    if name == "unsettled":
        assert states.settled(LIVES[name]()) == states.SETTLED
    else:
        with pytest.raises(SystemFault, match="cannot be without remains"):
            states.settled(LIVES[name]())


@pytest.mark.parametrize(
    ("whole", "uncleared", "little", "discarded", "life"),
    [
        (True, False, False, False, states.SETTLED),
        (True, False, False, True, states.DISCARDED),
        (True, True, False, False, states.Uncleared()),
        (True, True, True, False, states.Uncleared(little=True)),
        (False, False, False, False, states.UNSETTLED),
        (False, False, False, True, states.UNSETTLED),
        (False, True, True, False, states.Unsettled(uncleared=True)),
    ],
)
def test_what_a_release_leaves(
    whole: bool, uncleared: bool, little: bool, discarded: bool, life: states.Resting
) -> None:
    assert states.released(whole=whole, uncleared=uncleared, little=little, discarded=discarded) == life


@pytest.mark.parametrize(
    ("life", "holds", "uncleared", "cleared"),
    [
        (states.SETTLED, False, False, states.SETTLED),
        (states.UNSETTLED, True, False, states.UNSETTLED),
        (states.Unsettled(uncleared=True), True, True, states.UNSETTLED),
        (states.Uncleared(little=True), False, True, states.SETTLED),
        (states.DISCARDED, False, False, states.DISCARDED),
    ],
)
def test_what_is_left_without_a_process(
    life: states.Resting, holds: bool, uncleared: bool, cleared: states.Life
) -> None:
    assert (states.holds(life), states.is_uncleared(life), states.cleared(life)) == (holds, uncleared, cleared)
    assert states.resting(life) == states.doomed(life, True) == life


def test_a_process_that_is_let_go_is_closed_and_what_it_held_is_to_be_released() -> None:
    life = alive()
    assert states.holds(life) and states.cleared(life) == life and not states.is_uncleared(life)
    assert states.resting(life) == states.UNSETTLED
    cast(Mock, life.supervised).close.assert_called_once_with()


def test_a_removal_marks_a_process_and_takes_the_mark_back() -> None:
    life = alive()
    marked = states.doomed(life, True)
    assert isinstance(marked, states.Alive) and marked.doomed and marked.supervised is life.supervised
    assert states.doomed(marked, False) == life


async def test_a_wait_for_the_next_run_keeps_what_was_left_and_ends_its_timer() -> None:
    first, second = (Tasks().spawn(asyncio.sleep(1000), "timer") for _ in range(2))
    life = states.waiting(states.UNSETTLED, first)
    assert states.holds(life) and life.rest == states.UNSETTLED
    life = states.waiting(life, second)
    assert life == states.Waiting(second, states.UNSETTLED)
    assert states.resting(life) == states.UNSETTLED
    await asyncio.wait([first, second])
    assert first.cancelled() and second.cancelled()


async def test_a_timer_that_has_come_is_not_ended_by_the_start_that_it_makes() -> None:
    found: list[states.Life] = []

    async def start() -> None:
        await asyncio.sleep(0)
        found.append(states.resting(life))
        await asyncio.sleep(0)

    timer = Tasks().spawn(start(), "start")
    life = states.waiting(states.SETTLED, timer)
    await timer
    assert found == [states.SETTLED]
