"""Services, tasks and objects as clients see them."""

import msgspec
import pytest
from msgspec import UNSET

from husk.api.views import services as views
from husk.engine.model.network import Network
from husk.swarm.model.node import Node, manager_at
from husk.swarm.model.services import (
    ClusterObject,
    DriverSpec,
    Empty,
    Mode,
    Replicated,
    ReplicatedJob,
    Service,
    TaskSpec,
)
from tests.support.but import but
from tests.unit.swarm.swarm_room import spec, task


def service(mode: Mode | None = None, **fields: object) -> Service:
    wanted = spec("web", mode=mode or Mode(replicated=Replicated(replicas=3)))
    return Service(id="s", version=7, created_at="", updated_at="", spec=wanted, **fields)  # type: ignore[arg-type]


def test_a_service_says_what_kind_of_tasks_it_has_and_its_record_does_not() -> None:
    record = service(previous_spec=spec("web"))
    shown = views.service_document(record)
    assert shown.spec.task_template.runtime == "container" and record.spec.task_template.runtime == ""
    assert not isinstance(shown.previous_spec, msgspec.UnsetType)
    assert shown.previous_spec.task_template.runtime == "container"
    assert (shown.service_status, shown.job_status, shown.update_status) == (UNSET, UNSET, UNSET)
    assert views.service_document(service()).previous_spec is UNSET


def test_defaults_are_written_out_where_the_client_asks_for_them() -> None:
    bare = service()
    bare.spec.task_template = TaskSpec()
    assert views.service_document(bare).spec.task_template.restart_policy is None
    assert views.service_document(bare, defaults=True).spec.task_template.restart_policy is not None


@pytest.mark.parametrize(
    ("mode", "desired"),
    [
        (Mode(replicated=Replicated(replicas=3)), 3),
        (Mode(replicated_job=ReplicatedJob(max_concurrent=2, total_completions=9)), 2),
        (Mode(replicated_job=ReplicatedJob()), 1),
        (Mode(global_=Empty()), 2),
    ],
)
def test_the_status_counts_what_runs_of_what_is_wanted(mode: Mode, desired: int) -> None:
    record = service(mode, job_iteration=4)
    tasks = [
        task(record, slot=1),
        task(record, slot=2, state="preparing", node_id="other"),
        task(record, slot=3, desired_state="shutdown"),
        task(record, slot=4, state="complete", desired_state="complete", job_iteration=4),
        task(record, slot=5, state="complete", desired_state="complete", job_iteration=3),
    ]
    status = views.service_document(record, tasks).service_status
    assert not isinstance(status, msgspec.UnsetType)
    assert (status.running_tasks, status.desired_tasks) == (1, desired)
    assert status.completed_tasks == (1 if mode.is_job else 0)


def test_a_job_tells_which_run_it_is() -> None:
    job = service(Mode(global_job=Empty()), job_iteration=4, job_started_at="now")
    status = views.service_document(job).job_status
    assert not isinstance(status, msgspec.UnsetType) and (status.job_iteration.index, status.last_execution) == (
        4,
        "now",
    )


def test_a_task_that_waits_has_no_node_and_no_container() -> None:
    waiting = views.task_document(task(service(), slot=0, state="pending"))
    assert (waiting.node_id, waiting.slot, waiting.networks_attachments) == ("", UNSET, UNSET)
    assert (waiting.status.container_status, waiting.status.err, waiting.job_iteration) == (UNSET, UNSET, UNSET)
    lan = Network(id="l", name="lan", driver="overlay", created="", scope="swarm", subnet="10.0.0.0/24")
    running = views.task_document(task(service(), container_id="c", job_iteration=2), [(lan, "10.0.0.5/24")])
    assert running.node_id == "n"
    assert not isinstance(running.status.container_status, msgspec.UnsetType)
    assert running.status.container_status.container_id == "c"
    assert not isinstance(running.networks_attachments, msgspec.UnsetType)
    [attached] = running.networks_attachments
    assert (attached.addresses, attached.network.spec.name) == (["10.0.0.5/24"], "lan")


def test_only_a_config_tells_its_value() -> None:
    record = ClusterObject(
        id="x", kind="config", version=1, created_at="", updated_at="", name="app", labels={}, sealed=b"sealed"
    )
    assert b"sealed" not in msgspec.json.encode(views.object_document(record))
    assert views.object_document(record).spec.data is UNSET
    assert views.object_document(record, b"value").spec.data == "dmFsdWU="
    record = but(record, templating=DriverSpec(name="golang"))
    assert views.object_document(record).spec.templating == DriverSpec(name="golang")


def test_a_manager_that_is_down_is_unreachable() -> None:
    node = Node(id="n", version=1, created_at="", updated_at="", manager=manager_at("192.0.2.1"))
    for state, told in (("ready", "reachable"), ("down", "unreachable")):
        node = but(node, status__state=state)
        status = views.node_document(node, "").manager_status
        assert status is not UNSET and (status.reachability, status.addr) == (told, "192.0.2.1:2377")
