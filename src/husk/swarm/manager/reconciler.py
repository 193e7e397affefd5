"""The loop that decides what runs where: plan each service, place its tasks on nodes, write that down.

It is the manager's half: one at a time in a swarm. What it writes, each node's `agent` carries out; what agents report
wakes it again. It looks at the services that it is woken for, and at those whose alarms are due. All that it knows is
in the records, so that after a crash, or on another manager, the next one simply goes on.
"""

import asyncio
import logging
from collections.abc import Callable, Generator, Mapping
from typing import NamedTuple

from husk.aio.tasks import Tasks
from husk.engine.model.events import Events
from husk.errors import HuskError, Unavailable
from husk.swarm.loops import RETRY_NS, keep_looking
from husk.swarm.manager.changes import TaskChanges
from husk.swarm.manager.planner import Create, Plan, planning
from husk.swarm.manager.scheduler.scheduler import schedule
from husk.swarm.manager.updates import UpdateVerdict, conclude
from husk.swarm.membership.cluster import Cluster
from husk.swarm.model.clocks import CLOCK, Clock
from husk.swarm.model.ids import new_id
from husk.swarm.model.placement import NodeFacts
from husk.swarm.model.services import SECOND, Service, Task
from husk.swarm.node.assignments import LOCKED
from husk.swarm.node.delivery import files_of
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.transactions import Check, Stale, StoreUnavailable

log = logging.getLogger(__name__)

ROUNDS = 20
# Between two looks at a service that cannot be brought on, at most.
LONGEST_RETRY_NS = 60 * SECOND
# What a task goes through on its node before it runs means nothing to a plan.
ON_THEIR_WAY = ("accepted", "preparing", "ready", "starting")


class _Trouble(NamedTuple):
    reason: str
    tries: int


class Reconciler:
    def __init__(
        self,
        *,
        store: SwarmRecords,
        cluster: Cluster,
        nodes: Callable[[], Mapping[str, NodeFacts]],
        events: Events,
        looked: Callable[[], None],
        clock: Clock = CLOCK,
        new_id: Callable[[], str] = new_id,
    ) -> None:
        """`nodes` are those of the swarm now. `looked` is called after a look at services that have changed: it may be
        that they are reached in other ways then."""
        self._store = store
        self._cluster = cluster
        self._nodes = nodes
        self._events = events
        self._looked = looked
        self._clock = clock
        self._new_id = new_id
        self._tasks = Tasks()
        self._running = False
        self._woken = asyncio.Event()
        self._all = True
        self._declared = True
        self._touched: set[str] = set()
        # Services that have tasks without a node, and when to look at which service again.
        self._waiting: set[str] = set()
        self._alarms: dict[str, int] = {}
        # Services that could not be brought on last.
        self._troubles: dict[str, _Trouble] = {}
        # The leadership under which memory has caught up with what others had written before, or ourselves without an
        # answer; None for none.
        self._planning_as: tuple[Check, ...] | None = None

    def start(self) -> None:
        """Nothing is done where it runs."""
        if self._running:
            return
        self._running = True
        self._tasks.spawn(keep_looking(self._woken, self._look, self._failed, self._clock), "services: reconcile")
        self.wake()

    async def close(self) -> None:
        self._running = False
        await self._tasks.cancel_all()

    def wake(self, *service_ids: str) -> None:
        """Look at these services; without any at all of them, for the swarm or its nodes have changed."""
        self._all |= not service_ids
        self._touched.update(service_ids)
        # Others may have made room.
        self._touched |= self._waiting
        self._declared = True
        self._woken.set()

    def noticed(self, task: Task) -> None:
        """A task has another state, or is gone."""
        gone = task.id not in self._store.tasks
        if task.status.state in ON_THEIR_WAY and not gone:
            return
        if gone or not task.alive:
            # There is room now that others wait for.
            self._touched |= self._waiting
        self._touched.add(task.service_id)
        self._woken.set()

    def _failed(self, error: Exception) -> None:
        # Stale: another manager was faster, and what it wrote is on its way here.
        if not isinstance(error, Stale):
            log.error("services could not be reconciled; trying again", exc_info=error)
        self._all, self._planning_as = True, None

    async def _look(self) -> int | None:
        """One look; when to look again without being woken."""
        if not self._store.leadership.leading:
            # Somebody else does, or nobody can: what was to be looked at is, when that is our turn.
            self._all = True
            self._looked()
            return None
        if not await self._catch_up():
            self._all = True
            return self._clock.now() + RETRY_NS
        declared, self._declared = self._declared, False
        nodes = self._nodes() if self._cluster.active else {}
        for service_id in self._woken_for():
            if not self._leads():
                self._begin_anew()
                break
            self._alarms.pop(service_id, None)
            if (alarm := await self._bring_on(service_id, nodes)) is not None:
                self._alarms[service_id] = alarm
        if declared:
            self._looked()
        return min(self._alarms.values(), default=None)

    async def _catch_up(self) -> bool:
        """Know what others have planned, before the first plan: nothing that they have written may be done once more.
        News of that may be late, be it that they come from a member of etcd that has just died."""
        checks = self._store.leadership.checks
        if checks != self._planning_as:
            try:
                await self._store.catch_up()
            except Unavailable as error:
                log.info("services are not planned yet: %s", error.message)
                return False
            self._planning_as = checks
        return self._leads()

    def _leads(self) -> bool:
        """Tell if this manager plans all along since memory has caught up, and has not lost that and got it back."""
        return self._store.leadership.leading and self._store.leadership.checks == self._planning_as

    def _begin_anew(self) -> None:
        self._all = True
        self._woken.set()

    async def _bring_on(self, service_id: str, nodes: Mapping[str, NodeFacts]) -> int | None:
        """Look at one service, of which no fault stops those behind it; when to look again."""
        try:
            alarm = None
            if (service := self._store.services.get(service_id)) is None:
                await self._abandon(service_id, nodes)
            elif self._cluster.active:
                alarm = await self._tend(service, nodes)
        except StoreUnavailable:
            raise
        except Stale as stale:
            if any((check.kind, check.key) in stale.names for check in self._store.leadership.checks):
                raise
            # Somebody was faster, and what that one wrote is on its way here.
            return self._clock.now() + RETRY_NS
        except Exception as error:
            return await self._cannot(service_id, error)
        self._troubles.pop(service_id, None)
        return alarm

    async def _cannot(self, service_id: str, error: Exception) -> int:
        """A service cannot be brought on: people are told why, and it is tried again, later each time."""
        reason = error.message if isinstance(error, HuskError) else f"{type(error).__name__}: {error}"
        known = self._troubles.get(service_id)
        self._troubles[service_id] = trouble = _Trouble(reason, known.tries + 1 if known is not None else 1)
        service = self._store.services.get(service_id)
        if known is None or known.reason != reason:
            expected = error if not isinstance(error, HuskError) else None
            log.error("service %s cannot be brought on: %s", service_id, reason, exc_info=expected)
        if service is not None and self._cluster.active:
            try:
                await self._tell(service, reason)
            except HuskError as fault:
                log.debug("nor can that be told in its tasks: %s", fault.message)
        return self._clock.now() + min(RETRY_NS << min(trouble.tries - 1, 10), LONGEST_RETRY_NS)

    async def _tell(self, service: Service, reason: str) -> None:
        """Show among a service's tasks why it gets no others: by one that was never begun, and is small."""
        tasks = self._store.index.of_service(service.id)
        if any(task.status.err == reason and task.spec_version == service.spec_version for task in tasks):
            return
        node = "" if not service.spec.mode.is_global else next(iter(self._store.nodes), "")
        changes = TaskChanges(self._store, {}, clock=self._clock, new_id=self._new_id)
        changes.reject(service, Create(0 if node or service.spec.mode.is_job else 1, (), node), reason)
        await changes.write()

    def _woken_for(self) -> list[str]:
        everything, touched, now = self._all, self._touched, self._clock.now()
        self._all, self._touched = False, set()
        if everything:
            return list(dict.fromkeys([*self._store.services, *self._store.index.services]))
        return [*touched, *(id for id, alarm in self._alarms.items() if alarm <= now and id not in touched)]

    async def _abandon(self, service_id: str, nodes: Mapping[str, NodeFacts]) -> None:
        """Tasks of a service that is gone end with it; of one that cannot be read nobody knows."""
        self._waiting.discard(service_id)
        if service_id in self._store.unreadable.services:
            return
        known = nodes if self._cluster.active else None
        changes = TaskChanges(self._store, known, clock=self._clock, new_id=self._new_id)
        for task in self._store.index.of_service(service_id):
            changes.forget(task)
        await changes.write()

    async def _tend(self, service: Service, nodes: Mapping[str, NodeFacts]) -> int | None:
        """Plan a service and carry the plan out, until nothing is left to decide; when to look again."""
        retention = self._cluster.record.spec.history
        for _ in range(ROUNDS):
            if (current := self._store.services.get(service.id)) is None:
                self.wake(service.id)
                return None
            if self._store.unreadable.concerns(service.id):
                # A manager of a newer release may plan it, and so may this one when the task can be read.
                return None
            service = current
            tasks = self._store.index.of_service(service.id)
            decided = await _planned(planning(service, tasks, self._clock.now(), nodes, retention=retention))
            if not self._leads():
                self._begin_anew()
                return None
            if not self._current(service):
                continue
            changes = TaskChanges(self._store, nodes, clock=self._clock, new_id=self._new_id)
            changed = changes.carry_out(decided, service, self._cluster.record.spec.task_defaults.log_driver)
            self._place(service, nodes, changes)
            await changes.write(lambda: self._current(service))  # noqa: B023
            if decided.verdict is not None and self._current(service):
                await self._conclude(service, decided.verdict)
                changed = True
            if not changed:
                return decided.wake_at
        log.warning("service %s does not settle: looking again soon", service.spec.name)
        return self._clock.now() + RETRY_NS

    def _current(self, service: Service) -> bool:
        """Tell if a service is as it was. Records never change: another state is another record."""
        return self._store.services.get(service.id) is service

    def _place(self, service: Service, nodes: Mapping[str, NodeFacts], changes: TaskChanges) -> None:
        """Find nodes for the tasks that wait for one."""
        waiting = changes.waiting(service.id)
        self._waiting.discard(service.id)
        if not waiting:
            return
        if self._cluster.locked:
            for task in [task for task in waiting if files_of(task.spec.container_spec)]:
                changes.refuse(task, LOCKED)
            waiting = [task for task in waiting if not files_of(task.spec.container_spec)]
        choices = schedule(service, waiting, nodes, self._store.index.rooms, self._clock.now())
        for task, node_id in choices.placed:
            changes.assign(task, node_id)
        for task, reason in choices.refused:
            changes.refuse(task, reason)
        if choices.refused:
            self._waiting.add(service.id)

    async def _conclude(self, service: Service, verdict: UpdateVerdict) -> None:
        before = service.update_status.state if service.update_status else ""
        concluded = conclude(service, verdict, self._clock.now(), self._clock.stamp())
        await self._store.save(concluded, checks=self._store.leadership.checks)
        attributes = {
            "name": service.spec.name,
            "updatestate.old": before,
            "updatestate.new": concluded.update_status.state if concluded.update_status else "",
        }
        self._events.publish("service", "update", service.id, attributes)
        # A rollback has brought back former ports.
        self._declared = True
        self._woken.set()


async def _planned(pieces: Generator[None, None, Plan]) -> Plan:
    """Plan in pieces, and let others have their turn between them."""
    while True:
        try:
            next(pieces)
        except StopIteration as done:
            result: Plan = done.value
            return result
        await asyncio.sleep(0)
