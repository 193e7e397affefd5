"""Runs the tasks that its node is told to run: looks at their containers, launches, ends, tells how it goes.

The loop is woken by container events, by news of assignments and by its own clock; it looks at the tasks that it is
woken for. Work that takes time (pulling an image, stopping a container) is the `runner`'s, beside the loop; when it
ends it wakes the loop. All that the loop knows is in its assignments and in the containers' records, so that after a
crash the next daemon simply goes on.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from husk.aio.tasks import Tasks
from husk.engine.containers.service import Containers
from husk.engine.model.container import TASK_LABEL, Container
from husk.engine.model.events import Event, Events, matches
from husk.engine.model.filters import Filters
from husk.errors import HuskError
from husk.swarm.loops import RETRY_NS, keep_looking
from husk.swarm.model.clocks import CLOCK, Clock
from husk.swarm.model.services import Task, is_assigned
from husk.swarm.node.assignments import Assignments
from husk.swarm.node.runner import TaskRunner, container_of, is_healthy, is_unhealthy
from husk.swarm.state.transactions import StoreUnavailable

log = logging.getLogger(__name__)

# When somebody else has a port that a service publishes.
PORT_RETRY_NS = 5 * 10**9
# How many tasks are looked at in one go.
PIECE = 500
WATCHED = Filters({"type": ["container"], "event": ["die", "destroy", "start", "health_status"]})


class Agent:
    def __init__(
        self,
        *,
        assignments: Assignments,
        containers: Containers,
        runner: TaskRunner,
        reachable: Callable[[], Awaitable[bool]],
        events: Events,
        clock: Clock = CLOCK,
    ) -> None:
        """`reachable` makes names, addresses and ports lead to the tasks that run now: whether all do."""
        self._assignments = assignments
        self._containers = containers
        self._runner = runner
        self._reachable = reachable
        self._events = events
        self._clock = clock
        self._tasks = Tasks()
        self._running = False
        self._woken = asyncio.Event()
        self._all = True
        self._touched: set[str] = set()
        runner.moved.subscribe(lambda task: self.wake(task.id))

    def start(self) -> None:
        """Nothing is done where it runs."""
        if self._running:
            return
        self._running = True
        self._events.observe(self._noticed)
        self._tasks.spawn(keep_looking(self._woken, self._look, self._failed, self._clock), "services: run tasks")
        self.wake_all()

    async def close(self) -> None:
        self._running = False
        await self._tasks.cancel_all()

    def wake(self, *task_ids: str) -> None:
        """Look at these tasks, and at what leads to them; without any, only at that."""
        self._touched.update(task_ids)
        self._woken.set()

    def wake_all(self) -> None:
        self._all = True
        self._woken.set()

    def noticed(self, task: Task | None) -> None:
        """The record of a task of any node has changed, or is gone: what leads to it may have to be another."""
        if task is None or (is_assigned(task) and self._assignments.task(task.id) is None):
            self.wake()
        elif is_assigned(task) and not (task.wanted and self._runner.busy(task)):
            # Whoever works for it wakes us at the end, unless it is to end now.
            self.wake(task.id)

    def _noticed(self, event: Event) -> None:
        if TASK_LABEL in event.attributes and matches(event, WATCHED):
            self.wake(event.attributes[TASK_LABEL])

    def _failed(self, error: Exception) -> None:
        log.error("the tasks of this node could not be looked at; trying again", exc_info=error)
        self._all = True

    async def _look(self) -> int | None:
        """One look; when to look again without being woken."""
        tasks = self._woken_for()
        failed = set[str]()
        for number, task in enumerate(tasks):
            if number % PIECE == PIECE - 1:
                await asyncio.sleep(0)
            try:
                await self._tend(self._assignments.task(task.id) or task)
            except StoreUnavailable:
                raise
            except Exception as error:  # of one task, which stops no other
                self._not_tended(task, error)
                failed.add(task.id)
        alarm = await self._lead_there()
        if failed:
            self._touched |= failed
            again = self._clock.now() + RETRY_NS
            alarm = again if alarm is None else min(alarm, again)
        for looked_at in tasks:
            # Only now: new connections lead to others already.
            task = self._assignments.task(looked_at.id) or looked_at
            if self._runner.ending(task):
                continue
            if task.desired_state == "remove":
                self._runner.forget(task)
            elif task.alive and not task.wanted:
                self._runner.end(task)
        return alarm

    def _not_tended(self, task: Task, error: Exception) -> None:
        reason = error.message if isinstance(error, HuskError) else f"{type(error).__name__}: {error}"
        expected = None if isinstance(error, HuskError) else error
        log.warning("task %s could not be looked at; trying again: %s", task.id, reason, exc_info=expected)

    def _woken_for(self) -> list[Task]:
        everything, touched = self._all, self._touched
        self._all, self._touched = False, set()
        if everything:
            return list(self._assignments.tasks())
        return [task for task_id in touched if (task := self._assignments.task(task_id)) is not None]

    async def _lead_there(self) -> int | None:
        try:
            return None if await self._reachable() else self._clock.now() + PORT_RETRY_NS
        except (HuskError, OSError) as error:
            log.warning("services are not reachable as they should be: %s", error)
            return self._clock.now() + RETRY_NS

    async def _tend(self, task: Task) -> None:
        """Bring a task up to what its container is, and go on with what was cut off."""
        if self._runner.busy(task):
            return
        state = task.status.state
        if not task.alive:
            if self._runs(task):
                # Somebody has started the container of a task that is history.
                self._runner.end(task)
        elif state in ("starting", "running"):
            await self._observe(task)
        elif task.wanted:
            self._launch(task)

    def _launch(self, task: Task) -> None:
        if (service := self._assignments.service(task)) is None:
            return
        if not (reason := self._assignments.obstacle(task)):
            self._runner.launch(task, service)
        elif task.status.err != reason:
            self._runner.hold(task, reason)

    def _runs(self, task: Task) -> bool:
        try:
            return self._containers.find(container_of(task)).state.running
        except HuskError:
            return False

    async def _observe(self, task: Task) -> None:
        try:
            container = self._containers.find(task.status.container_id)
        except HuskError:
            await self._lost_container(task)
            return
        state = container.state
        if state.status in ("exited", "dead", "removing"):
            await self._ended(task, container)
        elif state.status == "created":
            if task.wanted:
                self._runner.start(task)
        elif task.status.state == "starting" and is_healthy(container):
            await self._runner.move(task, "running", "started", pid=state.pid, started=True)
        elif task.wanted and is_unhealthy(container):
            self._runner.fail_unhealthy(task)

    async def _lost_container(self, task: Task) -> None:
        if task.wanted:
            reason = f"No such container: {task.status.container_id}"
            await self._runner.move(task, "failed", "failed", err=reason)
        else:
            await self._runner.move(task, "shutdown", "shutdown")

    async def _ended(self, task: Task, container: Container) -> None:
        code = container.state.exit_code
        if not task.wanted:
            await self._runner.move(task, "shutdown", "shutdown", exit_code=code)
        elif code == 0:
            await self._runner.move(task, "complete", "finished", exit_code=0)
        else:
            reason = f"task: non-zero exit ({code})"
            reason += f": {container.state.error}" if container.state.error else ""
            await self._runner.move(task, "failed", "failed", err=reason, exit_code=code)
