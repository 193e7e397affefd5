"""Carries tasks through their lives: work that takes time, one piece per task at once, beside the agent's loop.

Each piece can be cut off anywhere by a crash, and by a newer decision between its steps: the task's record and its
container say how far it came, and the agent goes on from there.
"""

import asyncio
import contextlib
import logging
from collections.abc import Collection, Coroutine

import msgspec

from husk.aio.tasks import Tasks
from husk.engine.containers.service import Containers
from husk.engine.images.service import Images
from husk.engine.model.container import TASK_LABEL, Container, Status
from husk.engine.model.filters import Filters
from husk.errors import HuskError, NotFound, NotModified, full_disk
from husk.swarm.model.clocks import CLOCK, Clock
from husk.swarm.model.services import ALIVE, Service, Task, TaskState, TaskStatus
from husk.swarm.node.assignments import Assignments
from husk.swarm.node.delivery import Deliveries
from husk.swarm.signals import Signal
from husk.swarm.spec.containers import container_config
from husk.swarm.spec.expand import words_of

log = logging.getLogger(__name__)

PATIENCE = 1.0
# Between two tries to remove a container of a task that is not this node's, in seconds.
AGAIN = 5.0
# Where a container is that was started once and is not on its way out.
STARTED: tuple[Status, ...] = ("running", "paused", "restarting", "exited")


class TaskRunner:
    def __init__(
        self,
        *,
        assignments: Assignments,
        containers: Containers,
        images: Images,
        deliveries: Deliveries,
        clock: Clock = CLOCK,
        again: float = AGAIN,
    ) -> None:
        self._again = again
        self._assignments = assignments
        self._deliveries = deliveries
        self._containers = containers
        self._images = images
        # Something has become of a task.
        self.moved = Signal[[Task]]()
        self._clock = clock
        self._tasks = Tasks()
        # What is done with containers: half a container is none that anybody could stop or remove.
        self._steps = Tasks()
        self._busy: dict[str, asyncio.Task[None]] = {}
        # All that was begun for a task and is not over: of what is cut off, something may still be on its way.
        self._begun: dict[str, set[asyncio.Task[None]]] = {}
        self._ending: set[str] = set()
        # Containers of tasks that this node is not given any more, each with its task; and those that are on their way.
        self._strangers: dict[str, str] = {}
        self._removing: set[str] = set()

    def busy(self, task: Task) -> bool:
        return task.id in self._busy

    def ending(self, task: Task) -> bool:
        return task.id in self._ending

    async def close(self) -> None:
        await self._tasks.cancel_all()
        await self._steps.join()

    # --- pieces of work

    def launch(self, task: Task, service: Service) -> None:
        self._work(task, self._launch(task, service))

    def start(self, task: Task) -> None:
        """Go on with a task whose container was made and not started."""
        self._work(task, self._start(task, task.status.container_id))

    def end(self, task: Task) -> None:
        """Stop a task that is not wanted any more, whatever is being done for it now."""
        self._work(task, self._end(task, self._cut_off(task)))
        self._ending.add(task.id)

    def forget(self, task: Task) -> None:
        """Drop a task with its container."""
        self._work(task, self._forget(task, self._cut_off(task)))
        self._ending.add(task.id)

    def fail_unhealthy(self, task: Task) -> None:
        self._work(task, self._fail_unhealthy(task))

    def hold(self, task: Task, reason: str) -> None:
        """Something that it needs cannot be had now."""
        status = self._now(task).status
        self._work(task, self.move(task, status.state, status.message, err=reason))

    async def forget_all(self) -> None:
        """Drop all tasks; returns when their containers are gone."""
        for task in list(self._assignments.tasks()):
            self.forget(task)
        while left := [self._busy[task.id] for task in self._assignments.tasks() if task.id in self._busy]:
            await asyncio.wait(left)

    def remove_strangers(self, but: Collection[str] = ()) -> None:
        """Remove the containers of tasks that this node is not given any more; only when it was told of all it has.
        `but` are tasks of which it was not understood what they are to do. What cannot be removed is tried again."""
        known = {task.id for task in self._assignments.tasks()} | set(but)
        there = self._containers.listing(True, 0, Filters({"label": [TASK_LABEL]}))
        tasks = {container.id: container.config.labels[TASK_LABEL] for container in there}
        self._strangers = {container: task for container, task in tasks.items() if task not in known}
        for container in self._strangers.keys() - self._removing:
            self._removing.add(container)
            self._tasks.spawn(self._remove_stranger(container), f"a stranger's container {container[:12]}")

    async def remove_all(self) -> list[HuskError]:
        """Remove the containers of all tasks, whatever is known of those; why some are still there."""
        failures = []
        for container in self._containers.listing(True, 0, Filters({"label": [TASK_LABEL]})):
            try:
                await self._remove(container.id)
            except HuskError as error:
                failures.append(error)
        await self._deliveries.sweep(())
        return failures

    # --- how they go

    async def _remove_stranger(self, container: str) -> None:
        """Until it is gone, or no stranger any more."""
        try:
            while (of := self._strangers.get(container)) is not None:
                if any(task.id == of for task in self._assignments.tasks()):
                    return
                try:
                    await self._remove(container)
                    return
                except (HuskError, OSError) as error:
                    log.warning(
                        "a container that is no task's of this node, %s, cannot be removed yet: %s",
                        container[:12],
                        error,
                    )
                await asyncio.sleep(self._again)
        finally:
            self._removing.discard(container)

    async def _remove(self, container_id: str) -> None:
        with contextlib.suppress(NotFound):
            await self._containers.remove(container_id, True, True, False)

    async def _launch(self, task: Task, service: Service) -> None:
        if (left := self._left(task)) is not None and left.state.status in STARTED:
            # By a daemon that ended before a manager heard of it: it is no less what the task asks for.
            await self.move(task, "starting", "starting", container_id=left.id)
            return
        try:
            if self._now(task).status.state != "preparing":
                await self.move(task, "preparing", "preparing")
            container_id = await self._make_container(task, service)
        except Exception as error:
            await self.move(task, "rejected", "preparing", err=_reason(error))
            return
        await self.move(task, "starting", "starting", container_id=container_id)
        await self._start(task, container_id)

    async def _make_container(self, task: Task, service: Service) -> str:
        node = self._assignments.node
        if b"{{" in msgspec.json.encode(task.spec):  # templates may be hundreds of KiB
            made = await asyncio.to_thread(container_config, task, service, node)
        else:
            made = container_config(task, service, node)
        name, config, host_config, endpoints = made
        with contextlib.suppress(NotFound):
            # What a daemon that was cut off left of this task.
            await self._containers.remove(name, True, True, False)
        try:
            self._images.find(config.image)
        except NotFound:
            credentials = await self._assignments.credentials(task)
            await self._images.pull(config.image, "", "", credentials, lambda _: None)
        if files := await self._deliveries.deliver(task, words_of(task, service, node)):
            host_config = msgspec.structs.replace(host_config, mounts=[*(host_config.mounts or []), *files])
        making = self._containers.create(name, config, host_config, endpoints, "")
        created = await self._steps.to_its_end(making, f"make {name}")
        return created.container.id

    def _left(self, task: Task) -> Container | None:
        """Its container, made already when nothing was reported of one."""
        with contextlib.suppress(NotFound):
            container = self._containers.find(task.name)
            if container.config.labels.get(TASK_LABEL) == task.id:
                return container
        return None

    async def _start(self, task: Task, container_id: str) -> None:
        try:
            with contextlib.suppress(NotModified):
                await self._steps.to_its_end(self._containers.start(container_id), f"start {container_id[:12]}")
        except Exception as error:
            await self.move(task, "failed", "starting", err=_reason(error))

    async def _end(self, task: Task, former: Collection[asyncio.Task[None]]) -> None:
        await _ended(former)
        await self._stop(task)
        if self._now(task).alive:
            await self.move(task, "shutdown", "shutdown", exit_code=self._exit_code(task))

    async def _forget(self, task: Task, former: Collection[asyncio.Task[None]]) -> None:
        await _ended(former)
        await self._stop(task)
        with contextlib.suppress(NotFound):
            await self._containers.remove(container_of(self._now(task)), True, True, False)
        await self._deliveries.release(task)
        await self._assignments.gone(task)

    async def _stop(self, task: Task) -> None:
        with contextlib.suppress(NotFound, NotModified):
            await self._containers.stop(container_of(self._now(task)), None, "")

    async def _fail_unhealthy(self, task: Task) -> None:
        await self._stop(task)
        await self.move(
            task, "failed", "failed", err="task: non-zero exit (137): dockerexec: unhealthy container",
            exit_code=self._exit_code(task),
        )  # fmt: skip

    def _exit_code(self, task: Task) -> int:
        try:
            return self._containers.find(container_of(self._now(task))).state.exit_code
        except NotFound:
            return 0

    def _now(self, task: Task) -> Task:
        """A task as it is by now; as it was where nothing is known of it any more."""
        return self._assignments.task(task.id) or task

    def _cut_off(self, task: Task) -> Collection[asyncio.Task[None]]:
        """Cut off what is done for a task; return the work that must end before something else is done for the task."""
        if (former := self._busy.get(task.id)) is not None:
            former.cancel()
        return frozenset(self._begun.get(task.id, ()))

    def _work(self, task: Task, work: Coroutine[object, object, None]) -> None:
        running = self._tasks.spawn(_patiently(work), f"task {task.id}")
        self._busy[task.id] = running
        begun = self._begun.setdefault(task.id, set())
        begun.add(running)

        def done(ended: asyncio.Task[None]) -> None:
            work.close()  # it may have been cut off before its first step
            begun.discard(ended)
            if not begun and self._begun.get(task.id) is begun:
                del self._begun[task.id]
            if self._busy.get(task.id) is ended:
                del self._busy[task.id]
                self._ending.discard(task.id)
            self.moved.emit(task)

        running.add_done_callback(done)

    async def move(
        self,
        task: Task,
        state: TaskState,
        message: str,
        *,
        err: str = "",
        container_id: str = "",
        pid: int = 0,
        exit_code: int = 0,
        started: bool = False,
    ) -> None:
        """Write down where a task is."""
        now = self._clock.now()
        old = self._now(task).status
        status = TaskStatus(
            timestamp=self._clock.stamp(),
            state=state,
            message=message,
            err=err,
            container_id=container_id or old.container_id,
            pid=pid,
            exit_code=exit_code,
            since_ns=now,
            started_ns=now if started else old.started_ns,
        )
        await self._assignments.report(task, status)
        if state not in ALIVE:
            await self._deliveries.release(task)


async def _patiently(work: Coroutine[object, object, None]) -> None:
    """The agent tries again whatever failed, but not at once."""
    try:
        await work
    except HuskError as error:
        log.warning("a task could not be brought on: %s", error.message)
        await asyncio.sleep(PATIENCE)


async def _ended(former: Collection[asyncio.Task[None]]) -> None:
    """Wait for work that was cut off: it may still be making a container, and nothing is decided before it is over."""
    if former:
        await asyncio.wait(former)


def container_of(task: Task) -> str:
    """Its id where that is known: somebody may have given the container another name."""
    return task.status.container_id or task.name


def _reason(error: Exception) -> str:
    if isinstance(error, HuskError):
        return error.message
    if (full := full_disk(error)) is not None:
        return full.message
    log.error("a task could not be run", exc_info=error)
    return str(error) or type(error).__name__


def is_healthy(container: Container) -> bool:
    """Tell if a container runs as it should. One without a health check does as soon as it runs."""
    return container.state.health is None or container.state.health.status == "healthy"


def is_unhealthy(container: Container) -> bool:
    return container.state.health is not None and container.state.health.status == "unhealthy"
