"""Records of services and tasks, and what they say of themselves."""

import msgspec
import pytest

from husk.swarm.model.services import Empty, Mode, Replicated, ReplicatedJob, Service, ServiceSpec, TaskSpec, TaskState
from tests.unit.swarm.swarm_room import spec, task

SERVICE = Service(id="s", version=1, created_at="", updated_at="", spec=spec())


@pytest.mark.parametrize(
    ("mode", "job", "everywhere"),
    [
        (Mode(replicated=Replicated()), False, False),
        (Mode(global_=Empty()), False, True),
        (Mode(replicated_job=ReplicatedJob()), True, False),
        (Mode(global_job=Empty()), True, True),
    ],
)
def test_a_mode_is_a_job_or_not_and_everywhere_or_not(mode: Mode, job: bool, everywhere: bool) -> None:
    assert (mode.is_job, mode.is_global) == (job, everywhere)


def test_a_task_is_named_after_its_slot_or_its_node() -> None:
    assert task(SERVICE, slot=3).name == "web.3.task-web-3"
    assert task(SERVICE, slot=0).name == "web.n.task-web-0"
    assert task(SERVICE, slot=0, node_id="").name == "web.0.task-web-0"


@pytest.mark.parametrize(
    ("state", "desired", "alive", "wanted", "shown"),
    [
        ("running", "running", True, True, "running"),
        ("preparing", "ready", True, True, "ready"),
        ("running", "shutdown", True, False, "shutdown"),
        ("failed", "running", False, True, "shutdown"),
        ("complete", "complete", False, True, "complete"),
        ("failed", "complete", False, True, "shutdown"),
        ("shutdown", "remove", False, False, "remove"),
    ],
)
def test_what_is_wanted_of_a_task(state: TaskState, desired: TaskState, alive: bool, wanted: bool, shown: str) -> None:
    one = task(SERVICE, state=state, desired_state=desired)
    assert (one.alive, one.wanted, one.shown_desired_state) == (alive, wanted, shown)


def test_fields_that_clients_look_for_are_written_even_when_nobody_set_them() -> None:
    assert msgspec.to_builtins(TaskSpec()) == {"ForceUpdate": 0}
    assert msgspec.to_builtins(ServiceSpec())["TaskTemplate"] == {"ForceUpdate": 0}
    assert ServiceSpec().labels is not ServiceSpec().labels
