"""Who follows a service hears of its tasks as they start."""

from types import SimpleNamespace
from typing import cast

from husk.engine.model.container import TASK_LABEL
from husk.engine.model.events import Events
from husk.engine.services.containers import SERVICE_LABEL
from husk.engine.services.followers import Followers
from husk.engine.services.records import SwarmRecords

from .test_planner import make_task


def test_tasks_of_the_service_that_is_followed_and_its_end() -> None:
    mine, other = make_task(1, id="t1"), make_task(1, id="t2", service_id="other")
    events = Events()
    followers = Followers(cast(SwarmRecords, SimpleNamespace(tasks={"t1": mine, "t2": other})), events)

    def start(task: str, **labels: str) -> None:
        events.publish("container", "start", "c", {TASK_LABEL: task, **labels})

    with followers.following("s") as queue:
        start("t1", **{SERVICE_LABEL: "s"})
        start("t2", **{SERVICE_LABEL: "other"})
        start("gone", **{SERVICE_LABEL: "s"})
        start("t1")
        events.publish("container", "die", "c", {TASK_LABEL: "t1", SERVICE_LABEL: "s"})
        events.publish("service", "remove", "other", {})
        events.publish("service", "remove", "s", {})
        assert [queue.get_nowait() for _ in range(queue.qsize())] == [mine, None]
    start("t1", **{SERVICE_LABEL: "s"})
    assert queue.empty()
