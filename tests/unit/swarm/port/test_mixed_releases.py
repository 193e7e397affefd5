"""A value that only a newer release knows costs the one entry that it is in."""

import logging
from typing import Any

import msgspec
import pytest

from husk.errors import InvalidParameter
from husk.swarm.port.assignment_messages import AssignedTask, AssignedValue, AssignmentUpdate, Report, Reports, encoded
from husk.swarm.port.mixed_releases import MixedReader
from tests.unit.swarm.manager.test_planner import make_service, make_task


def changed(message: AssignmentUpdate | Reports, place: tuple[str | int, ...], value: object) -> bytes:
    """The message with another value at a place, as a newer release might send it."""
    document = msgspec.json.decode(encoded(message))
    part: Any = document
    for step in place[:-1]:
        part = part[step]
    part[place[-1]] = value
    return msgspec.json.encode(document)


TOLD = AssignmentUpdate(
    all=True,
    tasks=[AssignedTask(task=make_task(1, id=id), service=make_service()) for id in ("a", "b", "c")],
    values=[AssignedValue(kind="secret", id="s", data=b"\x00")],
    gone=["d"],
)
REPORTS = Reports(reports=[Report(task_id=id, status=make_task(1).status) for id in ("a", "b")] + [Report(task_id="c")])


@pytest.mark.parametrize(
    "place", [("task", "desired_state"), ("task", "status", "state"), ("task", "spec", "Resources")]
)
def test_a_task_in_a_state_that_is_not_known(place: tuple[str, ...]) -> None:
    told = MixedReader().told(changed(TOLD, ("tasks", 1, *place), "hibernating"))
    assert [given.task.id for given in told.tasks] == ["a", "c"] and told.unread == ["b"]
    assert (told.all, told.values, told.gone) == (True, TOLD.values, ["d"])


def test_a_report_of_a_state_that_is_not_known() -> None:
    said = MixedReader().reports(changed(REPORTS, ("reports", 0, "status", "state"), "hibernating"))
    assert [report.task_id for report in said.reports] == ["b", "c"] and said.unread == ["a"]


def test_each_reason_is_logged_once_and_not_at_any_length(caplog: pytest.LogCaptureFixture) -> None:
    reader = MixedReader()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            reader.told(changed(TOLD, ("tasks", 0, "task", "desired_state"), "hibernating"))
        assert len(caplog.messages) == 1 and "hibernating" in caplog.messages[0]
        for number in range(100):
            reader.reports(changed(REPORTS, ("reports", 0, "status", "state"), f"{number}" + "x" * 1000))
    assert len(caplog.messages) == 20 and max(map(len, caplog.messages)) < 400


def test_what_is_understood_is_as_it_was_and_nobody_else_says_what_is_not() -> None:
    assert MixedReader().told(encoded(TOLD)) == TOLD and MixedReader().reports(encoded(REPORTS)) == REPORTS
    assert MixedReader().told(changed(TOLD, ("unread",), ["z"])).unread == []


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"\xff", b'{"reports": 1}', b'{"reports": [{"task_id": 3}]}', b'{"reports": [{"status": 1}]}',
     b'{"reports": [7]}', changed(REPORTS, ("reports", 0, "task_id"), "")[:-5]],
)  # fmt: skip
def test_what_is_no_message(body: bytes) -> None:
    with pytest.raises(InvalidParameter, match="this is no message of a node"):
        MixedReader().reports(body)


def test_another_field_that_is_wrong_is_no_message() -> None:
    with pytest.raises(InvalidParameter):
        MixedReader().told(changed(TOLD, ("gone",), 3))
