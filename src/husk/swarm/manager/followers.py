"""Tells those who follow a service's logs of the tasks that it gets."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from husk.engine.model.container import TASK_LABEL
from husk.engine.model.events import Event, Events
from husk.swarm.model.services import Task
from husk.swarm.spec.containers import SERVICE_LABEL
from husk.swarm.state.records import SwarmRecords


class Followers:
    def __init__(self, store: SwarmRecords, events: Events) -> None:
        self._store = store
        self._queues: dict[str, set[asyncio.Queue[Task | None]]] = {}
        events.observe(self._noticed)
        store.index.changed.subscribe(self._changed)
        # By whichever manager.
        store.service_gone.subscribe(lambda service_id: self._tell(service_id, None))

    @contextmanager
    def following(self, service_id: str) -> Iterator["asyncio.Queue[Task | None]"]:
        """A queue of the tasks whose containers start from now on, on any node; None when the service is gone."""
        queue: asyncio.Queue[Task | None] = asyncio.Queue()
        self._queues.setdefault(service_id, set()).add(queue)
        try:
            yield queue
        finally:
            self._queues[service_id].discard(queue)
            if not self._queues[service_id]:
                del self._queues[service_id]

    def _noticed(self, event: Event) -> None:
        if event.type == "container" and event.action == "start" and SERVICE_LABEL in event.attributes:
            task = self._store.tasks.get(event.attributes.get(TASK_LABEL, ""))
            if task is not None:
                self._tell(task.service_id, task)

    def _changed(self, task_id: str) -> None:
        """Of containers on other nodes no event tells. Whoever hears of a task more than once knows it."""
        task = self._store.tasks.get(task_id) if self._queues else None
        if task is not None and task.status.state == "running" and task.status.container_id:
            self._tell(task.service_id, task)

    def _tell(self, service_id: str, task: Task | None) -> None:
        for queue in self._queues.get(service_id, ()):
            queue.put_nowait(task)
