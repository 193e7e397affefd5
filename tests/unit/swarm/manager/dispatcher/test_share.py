"""A node knows and says what is its own, whatever it asks for."""

import msgspec
import pytest

from husk.errors import Forbidden, InvalidParameter
from husk.swarm.manager.dispatcher import share
from husk.swarm.model.services import (
    ConfigReference,
    ContainerSpec,
    FileTarget,
    PortConfig,
    SecretReference,
    ServiceSpec,
    Task,
    TaskSpec,
    TaskState,
    TaskStatus,
    VirtualIP,
)
from tests.support.but import but
from tests.support.clock import FakeClock
from tests.unit.swarm.manager.test_planner import START, make_service, make_task


def with_files(task: Task, secret: str, config: str) -> Task:
    target = FileTarget(name="x")
    container = ContainerSpec(
        secrets=[SecretReference(secret_id=secret, secret_name="x", file=target)],
        configs=[ConfigReference(config_id=config, config_name="x", file=target)],
    )
    return msgspec.structs.replace(task, spec=TaskSpec(container_spec=container))


def test_a_node_is_told_of_its_own_tasks_and_what_they_need():
    mine = with_files(make_task(1, "assigned", node_id="a"), "s1", "c1")
    others = with_files(make_task(2, node_id="b", service_id="other"), "s2", "c2")
    waits = with_files(make_task(3, "pending", node_id="a", service_id="other"), "s3", "c3")
    ended = with_files(make_task(4, "failed", node_id="a"), "s4", "c4")
    unwanted = with_files(make_task(5, node_id="a", desired_state="shutdown"), "s5", "c5")
    services = {"s": make_service(), "other": make_service(id="other")}
    found = share.share_of("a", [mine, others, waits, ended, unwanted], services)
    assert set(found.tasks) == {mine.id, ended.id, unwanted.id}
    assert set(found.services) == {"s"}
    assert found.values == {("secret", "s1"), ("config", "c1")}
    assert share.share_of("", [make_task(1, node_id="")], services) == share.Share()


def test_of_a_service_a_node_is_told_what_a_container_has_of_it():
    spec = ServiceSpec(
        name="web", labels={"a": "b"}, task_template=TaskSpec(container_spec=ContainerSpec(env=["X=word"]))
    )
    service = make_service(
        credentials=b"sealed",
        previous_spec=spec,
        ports=[PortConfig(target_port=80)],
        virtual_ips=[VirtualIP(addr="10.0.0.2/24")],
    )
    service = but(service, spec=spec)
    found = share.needed_of(service)
    assert (found.spec.name, found.spec.labels, found.ports, found.virtual_ips) == (
        "web", {"a": "b"}, service.ports, service.virtual_ips,
    )  # fmt: skip
    told = msgspec.json.encode(found)
    assert b"word" not in told and not found.credentials and found.previous_spec is None


def status(state: TaskState, **fields: object) -> TaskStatus:
    return TaskStatus(timestamp="theirs", state=state, since_ns=1, started_ns=2, **fields)  # type: ignore[arg-type]


def test_times_are_the_managers_own():
    task = make_task(1, "starting", node_id="a")
    task = but(task, status__started_ns=0)
    written = share.checked("a", task, status("running", container_id="ab" * 32, pid=3), FakeClock(START + 5))
    assert (written.state, written.container_id, written.pid) == ("running", "ab" * 32, 3)
    assert (written.since_ns, written.started_ns) == (START + 5, START + 5) and written.timestamp != "theirs"
    task = but(task, status=written)
    again = share.checked("a", task, status("running", err="x" * 9999), FakeClock(START + 9))
    assert (again.since_ns, again.started_ns, len(again.err)) == (START + 5, START + 5, 4096)


@pytest.mark.parametrize(
    ("task", "reported"),
    [
        (None, "running"),
        (make_task(1, "starting", node_id="b"), "running"),
        (make_task(1, "pending", node_id="a"), "running"),
        (make_task(1, "running", node_id="a"), "starting"),
        (make_task(1, "failed", node_id="a"), "running"),
        (make_task(1, "failed", node_id="a"), "complete"),
        (make_task(1, "running", node_id="a"), "pending"),
        (make_task(1, "running", node_id="a"), "orphaned"),
        (make_task(1, "running", node_id="a"), "remove"),
        (make_task(1, "orphaned", node_id="a"), "running"),
    ],
)
def test_what_a_node_may_not_say(task: Task | None, reported: TaskState):
    with pytest.raises(Forbidden):
        share.checked("a", task, status(reported), FakeClock(START))


@pytest.mark.parametrize("wrong", ["../etc", "postgres", "ab" * 16, "AB" * 32, "ab" * 33])
def test_what_is_no_id_of_a_container(wrong: str):
    with pytest.raises(InvalidParameter):
        share.checked("a", make_task(1, node_id="a"), status("running", container_id=wrong), FakeClock(START))


@pytest.mark.parametrize("said", [{"exit_code": 10**30}, {"exit_code": -(1 << 31) - 1}, {"pid": 1 << 31}])
def test_what_is_no_number_that_clients_can_read(said: dict[str, int]):
    with pytest.raises(InvalidParameter, match="no process has such a number"):
        share.checked("a", make_task(1, node_id="a"), status("failed", **said), FakeClock(START))
    share.checked("a", make_task(1, node_id="a"), status("failed", exit_code=137, pid=1 << 22), FakeClock(START))


def test_only_what_is_to_be_removed_can_be_gone():
    task = make_task(1, "shutdown", node_id="a", desired_state="remove")
    assert share.check_gone("a", task) is task
    for node_id, other in (("b", task), ("a", make_task(1, node_id="a")), ("a", None)):
        with pytest.raises(Forbidden):
            share.check_gone(node_id, other)
