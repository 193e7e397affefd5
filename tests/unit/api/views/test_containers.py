"""The words of the STATUS column."""

import pytest

from husk.api.views.containers import command_text, status_of
from husk.engine.model.clock import parse_rfc3339
from husk.engine.model.container import State

T = "2026-01-02T03:04:05.000000000Z"
NOW = parse_rfc3339(T) / 1e9 + 300


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (State(), "Created"),
        (State(exit_code=127), "Created"),
        (State(status="running", started_at=T), "Up 5 minutes"),
        (State(status="paused", started_at=T), "Up 5 minutes (Paused)"),
        (State(status="restarting", started_at=T, finished_at=T, exit_code=1), "Restarting (1) 5 minutes ago"),
        (State(status="exited", started_at=T, finished_at=T, exit_code=137), "Exited (137) 5 minutes ago"),
        (State(status="removing", started_at=T), "Removal In Progress"),
        (State(status="dead", started_at=T), "Dead"),
    ],
)
def test_a_status_in_words(state: State, text: str) -> None:
    assert status_of(state).at(NOW)[0] == text


def test_a_clock_that_went_back_does_no_harm() -> None:
    assert status_of(State(status="running", started_at=T)).at(NOW - 1000)[0] == "Up Less than a second"


def test_words_with_spaces_are_quoted() -> None:
    assert command_text("sh", ["-c", "echo hi"]) == "sh -c 'echo hi'"
