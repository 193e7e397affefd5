"""This host as a worker of others' swarm: it asks their managers what to run, runs it, and tells how that goes.

It knows of the swarm what a manager tells it (`RemoteAssignments`), and keeps of it on the disk its certificate and the
managers' addresses. A daemon that ends leaves the tasks running; the next one goes on with them when a manager has told
it which are its own.
"""

import contextlib
import logging
from collections.abc import Awaitable, Callable

import msgspec

from husk.aio.tasks import Tasks
from husk.engine.containers.service import Containers
from husk.engine.images.service import Images
from husk.engine.model.events import Events
from husk.engine.networks.service import Networks
from husk.errors import HuskError
from husk.storage.secrets.task_files import TaskFiles
from husk.swarm.ca.identity import Identity
from husk.swarm.logs.source import LogSource, WorkerLogs
from husk.swarm.membership.joining import FAREWELL, is_managers
from husk.swarm.model.node import NodeDescription
from husk.swarm.model.swarm import Membership
from husk.swarm.network.worker import WorkerNetworks
from husk.swarm.node.agent import Agent
from husk.swarm.node.delivery import Deliveries
from husk.swarm.node.dispatch_client import HeartbeatSender, ManagerChannel
from husk.swarm.node.remote_assignments import RemoteAssignments
from husk.swarm.node.runner import TaskRunner
from husk.swarm.port.addresses import AddressCalls
from husk.swarm.port.assignment_messages import AssignmentUpdate, NetworkNews
from husk.swarm.port.dispatch import DispatchCalls
from husk.swarm.port.keeper import CertificateKeeper
from husk.swarm.port.logs import LogCalls
from husk.swarm.port.managers import Managers
from husk.swarm.signals import Signal
from husk.text.endpoints import MANAGER_PORT, HostPort, read_endpoint

log = logging.getLogger(__name__)

REMOVED = "this node has been removed from the swarm: leave it (docker swarm leave), and join again"


class WorkerRole:
    def __init__(
        self,
        membership: Membership,
        identity: Identity,
        save: Callable[[Identity], None],
        *,
        containers: Containers,
        images: Images,
        networks: Networks,
        files: TaskFiles,
        events: Events,
        description: NodeDescription,
        note: Callable[[Membership], Awaitable[None]],
        promoted: Callable[[], None] = lambda: None,
    ) -> None:
        """`save` puts a new certificate on the disk; it is called in a thread. `note` keeps this host's place for the
        next daemon, `promoted` hears that the swarm wants this node to be a manager."""
        self._membership = membership
        self._note = note
        self._promoted = promoted
        self._containers = containers
        self._managers = Managers([read_endpoint(text, MANAGER_PORT) for text in membership.managers], identity)
        self._calls = DispatchCalls(self._managers)
        self._keeper = CertificateKeeper(self._managers, save, identity, used=self._look_at)
        self._pulse = HeartbeatSender(self._calls, description, self._forget_tasks)
        woken, heard = Signal[...](), Signal[[NetworkNews | None]]()
        self._assignments = RemoteAssignments(
            ManagerChannel(self._calls), woken.emit, self._told_all, heard.emit, self._know
        )
        self._networks = WorkerNetworks(
            membership.node_id,
            AddressCalls(self._managers),
            networks=networks,
            containers=containers,
            events=events,
            own_tasks=self._assignments.tasks,
            woken=woken.emit,
            managers=lambda: [manager.host for manager in self._managers.known],
        )
        heard.subscribe(self._networks.hear)
        self._deliveries = Deliveries(files, self._assignments)
        self._runner = TaskRunner(
            assignments=self._assignments,
            containers=containers,
            images=images,
            deliveries=self._deliveries,
        )
        self._agent = Agent(
            assignments=self._assignments,
            containers=containers,
            runner=self._runner,
            reachable=self._networks.settle,
            events=events,
        )
        woken.subscribe(self._agent.wake)
        self._logs = WorkerLogs(LogCalls(self._managers), LogSource(containers, self._assignments.task).read)
        self._tasks = Tasks()

    @property
    def managers(self) -> tuple[HostPort, ...]:
        return self._managers.known

    @property
    def trouble(self) -> str:
        """The reason why no manager hears us; empty while one does."""
        return REMOVED if self._pulse.removed else self._pulse.trouble

    @property
    def address(self) -> str:
        """By which managers know this host; empty until one has told it."""
        try:
            return self._assignments.node.address
        except HuskError:
            return ""

    def start(self) -> None:
        self._agent.start()
        self._assignments.start()
        self._pulse.start()
        self._tasks.spawn(self._keeper.run(), "this node's certificate")
        self._look_at(self.identity)

    @property
    def identity(self) -> Identity:
        return self._keeper.identity

    def _look_at(self, identity: Identity) -> None:
        if is_managers(identity):
            self._promoted()

    async def close(self) -> None:
        """Its tasks run on. Safe to call twice."""
        await self._agent.close()
        await self._runner.close()
        await self._silence()
        self._networks.close()

    async def leave(self) -> None:
        """Nothing of the swarm is left here when this returns, be its managers there or not. Can be tried again."""
        # A heartbeat behind it would bring the node back.
        await self._pulse.close()
        with contextlib.suppress(HuskError):
            await self._calls.leave(FAREWELL)
        await self._agent.close()
        await self._silence()
        await self._runner.forget_all()
        failures = await self._runner.remove_all()
        await self._runner.close()
        await self._networks.leave()
        if failures:
            raise failures[0]

    async def _silence(self) -> None:
        await self._tasks.cancel_all()
        await self._pulse.close()
        await self._logs.close()
        await self._assignments.close()
        await self._managers.close()

    def _know(self, managers: list[tuple[str, str]]) -> None:
        """Note who the managers are now: the next daemon asks these."""
        ids, addresses = [id for id, _ in managers], [address for _, address in managers]
        self._managers.know([read_endpoint(address, MANAGER_PORT) for address in addresses])
        if (self._membership.manager_ids, self._membership.managers) != (ids, addresses):
            self._membership = msgspec.structs.replace(self._membership, manager_ids=ids, managers=addresses)
            self._tasks.spawn(self._save(self._membership), "the managers of the swarm")

    async def _save(self, membership: Membership) -> None:
        try:
            await self._note(membership)
        except HuskError as error:
            log.warning("the next daemon may not know who the managers are: %s", error.message)

    def _told_all(self) -> None:
        self._logs.start()
        unread = self._assignments.unread
        self._runner.remove_strangers(unread)
        alive = [*unread, *(task.id for task in self._assignments.tasks() if task.alive)]
        self._tasks.spawn(self._deliveries.sweep(alive), "secrets of tasks that have ended")

    def _forget_tasks(self) -> None:
        """The swarm has removed this node: others run what it ran."""
        log.warning(REMOVED)
        self._assignments.hear(AssignmentUpdate(all=True, complete=True))
