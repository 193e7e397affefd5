"""Followers of a service hear of its tasks as they start."""

from types import SimpleNamespace
from typing import cast

from husk.engine.model.container import TASK_LABEL
from husk.engine.model.events import Events
from husk.swarm.manager.followers import Followers
from husk.swarm.model.services import Task
from husk.swarm.signals import Signal
from husk.swarm.spec.containers import SERVICE_LABEL
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.task_index import TaskIndex
from tests.support.but import but
from tests.unit.swarm.manager.test_planner import make_task


def records(tasks: dict[str, Task]) -> SwarmRecords:
    return cast(
        SwarmRecords, SimpleNamespace(tasks=tasks, index=TaskIndex(lambda service: ()), service_gone=Signal[[str]]())
    )


def test_tasks_on_other_nodes_count_from_when_they_run() -> None:
    there = make_task(1, id="t1", state="starting")
    store = records({"t1": there})
    followers = Followers(store, Events())
    store.index.note(there)
    with followers.following("s") as queue:
        store.index.note(there)
        there = store.tasks["t1"] = but(there, status__state="running")
        store.index.note(there)
        assert queue.empty(), "it has no container yet"
        there = store.tasks["t1"] = but(there, status__container_id="c")
        store.index.note(there)
        assert queue.get_nowait() is there and queue.empty()
        there = store.tasks["t1"] = but(there, status__state="shutdown")
        store.index.note(there)
        assert queue.empty()


def test_tasks_of_the_service_that_is_followed_and_its_end() -> None:
    mine, other = make_task(1, id="t1"), make_task(1, id="t2", service_id="other")
    events = Events()
    store = records({"t1": mine, "t2": other})
    followers = Followers(store, events)

    def start(task: str, **labels: str) -> None:
        events.publish("container", "start", "c", {TASK_LABEL: task, **labels})

    with followers.following("s") as queue:
        start("t1", **{SERVICE_LABEL: "s"})
        start("t2", **{SERVICE_LABEL: "other"})
        start("gone", **{SERVICE_LABEL: "s"})
        start("t1")
        events.publish("container", "die", "c", {TASK_LABEL: "t1", SERVICE_LABEL: "s"})
        store.service_gone.emit("other")
        store.service_gone.emit("s")
        assert [queue.get_nowait() for _ in range(queue.qsize())] == [mine, None]
    start("t1", **{SERVICE_LABEL: "s"})
    assert queue.empty()
