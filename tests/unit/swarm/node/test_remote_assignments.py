"""A worker's end: what it is told counts, what it reports is heard in the end, whatever becomes of managers."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

import pytest

from husk.errors import InvalidParameter, Unavailable
from husk.registry.auth import Credentials
from husk.swarm.model.placement import NodeFacts
from husk.swarm.model.services import TaskState, TaskStatus
from husk.swarm.node.remote_assignments import RemoteAssignments
from husk.swarm.port.assignment_messages import AssignedTask, AssignedValue, AssignmentUpdate, Report, ReportReply
from tests.unit.swarm.manager.test_planner import make_service, make_task

NODE = NodeFacts(id="n", hostname="alpha")


class Manager:
    """One that can be cut off."""

    def __init__(self) -> None:
        self.there = True
        self.news: asyncio.Queue[AssignmentUpdate | None] = asyncio.Queue()
        self.heard: list[Report] = []
        self.sessions = 0

    async def assignments(self) -> AsyncGenerator[AssignmentUpdate]:
        self._reach()
        self.sessions += 1
        while (told := await self.news.get()) is not None:
            yield told

    async def report(self, reports: Sequence[Report]) -> ReportReply:
        self._reach()
        self.heard += reports
        return ReportReply()

    def _reach(self) -> None:
        if not self.there:
            raise Unavailable("no manager of the swarm can be reached")


class Worker:
    def __init__(self) -> None:
        self.manager = Manager()
        self.woken: list[str] = []
        self.told_all = 0
        self.assignments = RemoteAssignments(
            self.manager, lambda *ids: self.woken.extend(ids), self._complete, pauses=(0.001, 0.01)
        )

    def _complete(self) -> None:
        self.told_all += 1

    def tell(self, *tasks: AssignedTask, **told: object) -> None:
        self.assignments.hear(AssignmentUpdate(tasks=list(tasks), **told))  # type: ignore[arg-type]

    async def until(self, condition: object) -> None:
        async with asyncio.timeout(20):
            while not condition():  # type: ignore[operator]
                await asyncio.sleep(0.001)


@pytest.fixture
async def worker() -> AsyncIterator[Worker]:
    made = Worker()
    yield made
    await made.assignments.close()


def given(id: str = "t", state: TaskState = "assigned", **fields: object) -> AssignedTask:
    return AssignedTask(
        task=make_task(1, state, id=id, **fields), service=make_service(), credentials=Credentials("u", "w")
    )


def status(state: TaskState) -> TaskStatus:
    return TaskStatus(timestamp="", state=state)


async def test_what_is_told_is_what_the_agent_sees(worker: Worker) -> None:
    assignments = worker.assignments
    with pytest.raises(Unavailable):
        _ = assignments.node
    worker.tell(node=NODE, all=True, values=[AssignedValue(kind="secret", id="s", data=b"hunter2")])
    one = given()
    worker.tell(one)
    assert assignments.node == NODE and assignments.value("secret", "s").data == b"hunter2"
    assert list(assignments.tasks()) == [one.task] and assignments.task("t") is one.task
    assert assignments.service(one.task) is one.service and assignments.obstacle(one.task) == ""
    assert await assignments.credentials(one.task) == Credentials("u", "w")
    assert worker.woken == ["t"]
    worker.tell(dropped=[("secret", "s")])
    with pytest.raises(InvalidParameter):
        assignments.value("secret", "s")
    stranger = make_task(2)
    assert assignments.service(stranger) is None and await assignments.credentials(stranger) is None


async def test_values_that_a_new_manager_does_not_tell_are_forgotten(worker: Worker) -> None:
    old, kept = (AssignedValue(kind="secret", id=id, data=b"x") for id in ("old", "kept"))
    worker.tell(node=NODE, all=True, complete=True, values=[old, kept])
    worker.tell(all=True, values=[kept])
    assert worker.assignments.value("secret", "old"), "until it has told all"
    worker.tell(complete=True)
    assert worker.assignments.value("secret", "kept")
    with pytest.raises(InvalidParameter):
        worker.assignments.value("secret", "old")


async def test_how_far_a_task_came_is_known_best_here(worker: Worker) -> None:
    worker.tell(given())
    task = worker.assignments.task("t")
    assert task is not None
    await worker.assignments.report(task, status("running"))
    worker.tell(given(desired_state="shutdown"))
    now = worker.assignments.task("t")
    assert now is not None and (now.status.state, now.desired_state) == ("running", "shutdown")
    worker.tell(given(state="orphaned"))
    now = worker.assignments.task("t")
    assert now is not None and now.status.state == "orphaned", "unless the swarm has given it up"


async def test_what_the_swarm_does_not_know_any_more_is_removed(worker: Worker) -> None:
    worker.tell(given("a"), given("b"), all=True)
    worker.tell(complete=True)
    assert worker.told_all == 1
    worker.tell(gone=["a"])
    worker.tell(all=True)
    worker.tell(given("c"))
    assert [task.desired_state for task in worker.assignments.tasks()] == ["remove", "running", "running"]
    worker.tell(complete=True)
    assert [task.desired_state for task in worker.assignments.tasks()] == ["remove", "remove", "running"]


async def test_reports_are_heard_in_the_end_the_latest_of_each_task(worker: Worker) -> None:
    worker.manager.there = False
    worker.assignments.start()
    worker.tell(given("a"), given("b"))
    a, b = worker.assignments.task("a"), worker.assignments.task("b")
    assert a is not None and b is not None
    for state in ("preparing", "starting", "running"):
        await worker.assignments.report(a, status(state))
    await worker.assignments.gone(b)
    assert worker.assignments.task("b") is None
    worker.tell(given("b"))
    assert worker.assignments.task("b") is None, "it is gone, only nobody knows yet"
    worker.manager.there = True
    await worker.until(lambda: len(worker.manager.heard) >= 2)
    heard = {report.task_id: report.status and report.status.state for report in worker.manager.heard}
    assert heard == {"a": "running", "b": None}


async def test_a_worker_that_lost_its_manager_listens_to_the_next(worker: Worker) -> None:
    worker.assignments.start()
    worker.manager.news.put_nowait(AssignmentUpdate(all=True, tasks=[given()]))
    await worker.until(lambda: worker.assignments.task("t"))
    worker.manager.there = False
    worker.manager.news.put_nowait(None)
    await worker.until(lambda: worker.manager.news.empty())
    assert worker.assignments.task("t") is not None, "its tasks run on"
    worker.manager.there = True
    await worker.until(lambda: worker.manager.sessions == 2)


async def test_a_report_that_was_not_heard_counts_when_all_is_told_again(worker: Worker) -> None:
    worker.tell(given())
    task = worker.assignments.task("t")
    assert task is not None
    await worker.assignments.report(task, status("failed"))
    worker.tell(given(state="running"), all=True)
    again = worker.assignments.task("t")
    assert again is not None and again.status.state == "failed"


async def test_a_manager_that_knows_less_than_it_was_told_hears_it_again(worker: Worker) -> None:
    """Its records may come out of a backup."""
    worker.tell(given("t"), given("u"), all=True, complete=True)
    worker.assignments.start()
    for name, state in (("t", "failed"), ("u", "running")):
        task = worker.assignments.task(name)
        assert task is not None
        await worker.assignments.report(task, status(state))  # type: ignore[arg-type]
    await worker.until(lambda: len(worker.manager.heard) == 2)
    worker.manager.heard.clear()
    worker.tell(given("t", "running"), given("u", "running"), all=True, complete=True)
    await worker.until(lambda: worker.manager.heard)
    assert [(report.task_id, report.status and report.status.state) for report in worker.manager.heard] == [
        ("t", "failed")
    ]


async def test_what_a_newer_manager_says_in_words_of_its_own_leaves_a_task_as_it_is():
    worker = Worker()
    worker.tell(
        AssignedTask(task=make_task(1, id="a")), AssignedTask(task=make_task(2, id="b")), all=True, complete=True
    )
    worker.woken.clear()
    worker.tell(all=True, unread=["a", "other"])
    worker.tell(complete=True)
    assert worker.assignments.unread == {"a", "other"} and worker.woken == ["b"]
    known = {task.id: task.desired_state for task in worker.assignments.tasks()}
    assert known == {"a": "running", "b": "remove"}
    worker.tell(AssignedTask(task=make_task(1, id="a")))
    assert worker.assignments.unread == {"other"}
    worker.tell(gone=["other"])
    assert not worker.assignments.unread
