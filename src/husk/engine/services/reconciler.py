"""The loop that makes services as they are declared: observe, plan, act, until nothing is left to do.

Woken by container events, by changes of services and by the planner's alarms. Work that takes time (pulling an image,
stopping a container) is the `runner`'s, beside the loop; when it ends it wakes the loop. All that the loop knows is in
the store and in the containers' records, so that after a crash the next daemon simply goes on.
"""

import asyncio
import contextlib
import logging
from collections.abc import Generator, Iterable

import msgspec

from husk.engine.containers.service import Containers
from husk.engine.model.clock import now_ns, rfc3339
from husk.engine.model.container import TASK_LABEL, Container
from husk.engine.model.events import Event, Events, matches
from husk.engine.model.filters import Filters
from husk.engine.services import placement
from husk.engine.services.cluster import Cluster
from husk.engine.services.delivery import files_of
from husk.engine.services.endpoints import Endpoints
from husk.engine.services.ids import new_id
from husk.engine.services.model import Amount, Service, Task, TaskSpec, TaskStatus
from husk.engine.services.planner import PIECE, Create, Forget, Plan, Stop, planning
from husk.engine.services.records import SwarmRecords
from husk.engine.services.runner import Runner, is_healthy, is_unhealthy
from husk.engine.services.updates import Verdict, conclude
from husk.errors import HuskError
from husk.tasks import Tasks

log = logging.getLogger(__name__)

ROUNDS = 20
# When something keeps failing, or when an event was missed.
RETRY_NS = 10**9
# When somebody else has a port that a service publishes.
PORT_RETRY_NS = 5 * 10**9
WATCHED = Filters({"type": ["container"], "event": ["die", "destroy", "start", "health_status"]})


class Reconciler:
    def __init__(
        self,
        *,
        store: SwarmRecords,
        cluster: Cluster,
        containers: Containers,
        runner: Runner,
        endpoints: Endpoints,
        events: Events,
    ) -> None:
        self._store = store
        self._endpoints = endpoints
        self._cluster = cluster
        self._containers = containers
        self._runner = runner
        self._events = events
        self._tasks = Tasks()
        self._woken = asyncio.Event()

    def start(self) -> None:
        self._events.observe(self._noticed)
        self._tasks.spawn(self._run(), "services: reconcile")
        self.wake()

    async def close(self) -> None:
        await self._tasks.cancel_all()

    def wake(self) -> None:
        """Something may have changed: look."""
        self._woken.set()

    def _noticed(self, event: Event) -> None:
        if TASK_LABEL in event.attributes and matches(event, WATCHED):
            self.wake()

    async def _run(self) -> None:
        alarm: int | None = None
        while True:
            timeout = None if alarm is None else max(0.0, (alarm - now_ns()) / 1e9)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), timeout)
            self._woken.clear()
            try:
                alarm = await self._look()
            except Exception:
                # The loop is the promise: it must outlive a fault in one look.
                log.exception("services could not be reconciled; trying again")
                alarm = now_ns() + RETRY_NS

    async def _look(self) -> int | None:
        """One look at everything; when to look again without being woken."""
        alarms = []
        for task in list(self._store.tasks.values()):
            # Tasks of services that are gone end with them.
            known = task.service_id in self._store.services or task.service_id in self._store.unreadable_services
            if not known and not self._runner.busy(task):
                self._runner.forget(task)
                alarms.append(now_ns() + RETRY_NS)
        for service in list(self._store.services.values()):
            if self._cluster.active and (alarm := await self._tend(service)):
                alarms.append(alarm)
        try:
            if not await self._endpoints.settle():
                alarms.append(now_ns() + PORT_RETRY_NS)
        except (HuskError, OSError) as error:
            log.warning("services are not reachable as they should be: %s", error)
            alarms.append(now_ns() + RETRY_NS)
        for task in list(self._store.tasks.values()):
            # Only now: new connections lead to others already.
            if task.alive and not task.wanted and not self._runner.ending(task):
                self._runner.end(task)
        return min(alarms, default=None)

    async def _tend(self, service: Service) -> int | None:
        node = self._cluster.node_facts()
        retention = self._cluster.record.spec.history
        for _ in range(ROUNDS):
            if (current := self._store.services.get(service.id)) is None:
                return None
            service = current
            await self._observe(self._tasks_of(service))
            version = service.version
            tasks = self._tasks_of(service)
            suits = placement.suits(service.spec.task_template.placement, node)
            drained = node.availability == "drain" or not suits
            decided = await _planned(planning(service, tasks, now_ns(), drained=drained, retention=retention))
            changed = await self._apply(service, version, decided)
            self._place(service, node)
            if not changed:
                return decided.wake_at
        log.warning("service %s does not settle: looking again soon", service.spec.name)
        return now_ns() + RETRY_NS

    def _tasks_of(self, service: Service) -> list[Task]:
        return [task for task in self._store.tasks.values() if task.service_id == service.id]

    # --- observe

    async def _observe(self, tasks: list[Task]) -> None:
        """Bring task records up to what their containers are, and go on with what was cut off."""
        for number, task in enumerate(tasks):
            if number % PIECE == PIECE - 1:
                await asyncio.sleep(0)
            if self._runner.busy(task):
                continue
            if task.alive and task.status.state in ("starting", "running"):
                await self._observe_one(task)
            elif not task.alive and self._runs(task):
                # Somebody has started the container of a task that is history.
                self._runner.end(task)

    def _runs(self, task: Task) -> bool:
        try:
            return bool(task.status.container_id) and self._containers.find(task.status.container_id).state.running
        except HuskError:
            return False

    async def _observe_one(self, task: Task) -> None:
        try:
            container = self._containers.find(task.status.container_id)
        except HuskError:
            await self._gone(task)
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

    async def _gone(self, task: Task) -> None:
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

    # --- act

    async def _apply(self, service: Service, version: int, decided: Plan) -> bool:
        """Carry a plan out, as long as it is about the service as it is now. Whether there was anything to do."""
        changed = False
        for action in decided.actions:
            if not self._current(service, version):
                return True
            match action:
                case Create(slot, restarts):
                    await self._create(service, slot, restarts)
                case Stop(task_id, remove):
                    if (task := self._store.tasks.get(task_id)) is None:
                        continue
                    task.desired_state = "remove" if remove else "shutdown"
                    await self._store.settle(task)
                case Forget(task_id):
                    old = self._store.tasks.get(task_id)
                    if old is None or self._runner.busy(old):
                        continue
                    self._runner.forget(old)
            changed = True
        if decided.verdict is not None and self._current(service, version):
            await self._conclude(service, decided.verdict)
            changed = True
        return changed

    def _current(self, service: Service, version: int) -> bool:
        return self._store.services.get(service.id) is service and service.version == version

    async def _create(self, service: Service, slot: int, restarts: tuple[int, ...]) -> None:
        now = now_ns()
        stamp = rfc3339(now)
        is_job = service.spec.mode.is_job
        await self._store.save(
            Task(
                id=new_id(),
                version=0,
                created_at=stamp,
                created_ns=now,
                updated_at=stamp,
                service_id=service.id,
                service_name=service.spec.name,
                slot=slot,
                node_id=self._cluster.node_id,
                spec=self._with_defaults(service.spec.task_template),
                spec_version=service.spec_version,
                status=TaskStatus(timestamp=stamp, state="pending", message="pending task scheduling", since_ns=now),
                desired_state="complete" if is_job else "running",
                job_iteration=service.job_iteration if is_job else None,
                restarts=restarts,
            )
        )

    def _with_defaults(self, template: TaskSpec) -> TaskSpec:
        """What the swarm declares for tasks that say nothing themselves."""
        driver = self._cluster.record.spec.task_defaults.log_driver
        if template.log_driver is not None or driver is None:
            return template
        return msgspec.structs.replace(template, log_driver=driver)

    async def _conclude(self, service: Service, verdict: Verdict) -> None:
        before = service.update_status.state if service.update_status else ""
        service.update_status = conclude(service, verdict, rfc3339(now_ns()))
        await self._store.save(service)
        attributes = {
            "name": service.spec.name,
            "updatestate.old": before,
            "updatestate.new": service.update_status.state,
        }
        self._events.publish("service", "update", service.id, attributes)

    # --- run tasks

    def _place(self, service: Service, node: placement.NodeFacts) -> None:
        """Start what waits for a place, where there is one."""
        waiting = [task for task in self._tasks_of(service) if _waits(task) and not self._runner.busy(task)]
        if not waiting:
            return
        others = [task for task in self._store.tasks.values() if self._takes_room(task)]
        here = sum(1 for task in others if task.service_id == service.id)
        taken = {port for task in others for port in self._host_ports(task)}
        reserved = _sum(_reserved(task) for task in others)
        # Those that had a place when they were cut off come first, and are counted as having it.
        for task in sorted(waiting, key=lambda t: t.status.state == "pending"):
            placed = task.status.state != "pending"
            spec = msgspec.structs.replace(task.spec, placement=service.spec.task_template.placement)
            ports = self._host_ports(task)
            rest = _without(reserved, _reserved(task)) if placed else reserved
            reason = placement.refusal(spec, node, here - placed, [rest], [] if placed else ports, taken)
            if self._cluster.locked and files_of(task.spec.container_spec):
                reason = reason or "the swarm is locked: its secrets and configs cannot be read (docker swarm unlock)"
            if not reason:
                self._runner.launch(task, service, node)
                here += not placed
                taken.update(ports)
                reserved = _sum((rest, _reserved(task)))
            elif task.status.err != reason:
                self._runner.refuse(task, reason)

    def _host_ports(self, task: Task) -> list[placement.Port]:
        service = self._store.services.get(task.service_id)
        ports = service.ports if service is not None else []
        return [(p.protocol, p.published_port) for p in ports if p.publish_mode == "host" and p.published_port]

    def _takes_room(self, task: Task) -> bool:
        return task.alive and (task.status.state != "pending" or self._runner.launching(task))


async def _planned(pieces: Generator[None, None, Plan]) -> Plan:
    """Plan in pieces, and let others have their turn between them."""
    while True:
        try:
            next(pieces)
        except StopIteration as done:
            result: Plan = done.value
            return result
        await asyncio.sleep(0)


def _waits(task: Task) -> bool:
    return task.wanted and task.status.state in ("pending", "assigned", "preparing")


def _reserved(task: Task) -> Amount:
    return (task.spec.resources.reservations if task.spec.resources else None) or Amount()


def _sum(amounts: Iterable[Amount]) -> Amount:
    result = Amount()
    for amount in amounts:
        result.nano_cpus += amount.nano_cpus
        result.memory_bytes += amount.memory_bytes
    return result


def _without(whole: Amount, part: Amount) -> Amount:
    return Amount(nano_cpus=whole.nano_cpus - part.nano_cpus, memory_bytes=whole.memory_bytes - part.memory_bytes)
