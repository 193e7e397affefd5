"""The operations of the edge on services and tasks."""

import asyncio
import contextlib
import logging
from typing import get_args

import msgspec

from husk.engine.model.filters import Filters
from husk.engine.model.names import random_name
from husk.engine.model.network import Network
from husk.errors import Conflict, HuskError, InvalidParameter
from husk.registry.auth import Credentials
from husk.swarm.backup.backups import Backups
from husk.swarm.logs.parts import LogParts
from husk.swarm.manager.followers import Followers
from husk.swarm.manager.parts import ManagerParts
from husk.swarm.membership.parts import MembershipParts
from husk.swarm.model.clocks import CLOCK, Clock
from husk.swarm.model.ids import new_id
from husk.swarm.model.services import (
    PortConfig,
    Service,
    ServiceSpec,
    Task,
    TaskState,
    copied,
)
from husk.swarm.model.settings import NodeSpec
from husk.swarm.network.parts import NetworkParts
from husk.swarm.node.parts import NodeParts
from husk.swarm.role import NodeRole
from husk.swarm.spec import validate
from husk.swarm.spec.declared import changed_to, mode_of, published_ports
from husk.swarm.spec.defaults import complete
from husk.swarm.spec.matching import service_matches, task_matches
from husk.swarm.spec.network_services import ServiceOnNetwork
from husk.swarm.state.parts import StateParts
from husk.swarm.state.records import OUT_OF_SEQUENCE, in_sequence, resolve
from husk.swarm.state.transactions import StoreUnavailable
from husk.swarm.surroundings import SwarmSurroundings

log = logging.getLogger(__name__)


class SwarmControl:
    def __init__(
        self,
        around: SwarmSurroundings,
        state: StateParts,
        membership: MembershipParts,
        network: NetworkParts,
        logs: LogParts,
        node: NodeParts,
        manager: ManagerParts,
        node_role: NodeRole,
        backups: Backups,
        clock: Clock = CLOCK,
    ) -> None:
        self._clock = clock
        self._events = around.events
        self._containers = around.containers
        self._store = state.records
        self.cluster = membership.cluster
        self.nodes = membership.nodes
        self.certificates = membership.certificates
        self._etcd_membership = membership.etcd_membership
        self._endpoints = network.endpoints
        self.networks = network.networks
        self.logs = logs.tasks
        self._agent = node.agent
        self._runner = node.runner
        self._credentials = node.credentials
        self._reconciler = manager.reconciler
        self._workers = manager.workers
        self.listener = manager.listener
        self.secrets = manager.secrets
        self.configs = manager.configs
        self.node_role = node_role
        self._changing = node_role.changing
        self.backups = backups
        self.followers = Followers(self._store, around.events)

    async def started(self) -> None:
        """Go on as a manager: the swarm or its node has changed."""
        await self.node_role.manager_role.started()

    @property
    def trouble(self) -> str:
        """The reason why this manager cannot do all that it should; empty where it can."""
        return self.cluster.away or self.cluster.port_trouble or self._etcd_membership.trouble

    # --- services

    def find(self, reference: str) -> Service:
        self._require_swarm()
        return resolve(self._store.services, self._names(), reference, "service")

    def listing(self, filters: Filters) -> list[Service]:
        self._require_swarm()
        return [s for s in self._store.services.values() if service_matches(s, filters)]

    async def create(self, spec: ServiceSpec, credentials: Credentials | None) -> Service:
        async with self._changing:
            service = await self._store.retried(lambda: self._create(spec, credentials))
        self._events.publish("service", "create", service.id, {"name": spec.name})
        self._reconciler.wake(service.id)
        return service

    async def _create(self, spec: ServiceSpec, credentials: Credentials | None) -> Service:
        self._require_swarm()
        seen = self._store.guard("service")
        spec.name = spec.name or random_name(self._names())
        await self._check(spec)
        if spec.name in self._names():
            raise Conflict(
                "rpc error: code = AlreadyExists desc = name conflicts with an existing object: "
                f"service {spec.name} already exists"
            )
        complete(spec)
        now = self._clock.stamp()
        service = Service(id=new_id(), version=0, created_at=now, updated_at=now, spec=spec, job_started_at=now)
        service = msgspec.structs.replace(service, ports=self._ports(service, spec))
        service = await self._credentials.keep(service, credentials)
        async with self._endpoints.assigned(service) as assigned:
            self._check_references(spec)
            await self._store.save(assigned, alone=seen)
        return self._store.services.get(service.id, assigned)

    async def update(
        self, reference: str, version: int, spec: ServiceSpec, *, rollback: bool, credentials: Credentials | None
    ) -> None:
        async with self._changing:
            changed = await self._store.retried(lambda: self._update(reference, version, spec, rollback, credentials))
        self._events.publish("service", "update", changed.id, {"name": changed.spec.name})
        self._reconciler.wake(changed.id)

    async def _update(
        self, reference: str, version: int, spec: ServiceSpec, rollback: bool, credentials: Credentials | None
    ) -> Service:
        service, seen = self.find(reference), self._store.guard("service")
        if version != service.version:
            raise InvalidParameter(OUT_OF_SEQUENCE)
        if rollback:
            if service.previous_spec is None:
                raise InvalidParameter(
                    "rpc error: code = FailedPrecondition desc = service does not have a previous spec"
                )
            spec = copied(service.previous_spec)
        await self._check(spec, service.spec, service.previous_spec)
        if spec.name != service.spec.name:
            raise InvalidParameter("rpc error: code = Unimplemented desc = renaming services is not supported")
        complete(spec)
        if mode_of(spec.mode) != mode_of(service.spec.mode):
            raise InvalidParameter("rpc error: code = Unimplemented desc = service mode change is not allowed")
        changed = changed_to(service, spec, self._ports(service, spec), rollback, self._clock)
        changed = await self._credentials.keep(changed, credentials)
        async with self._endpoints.assigned(changed) as assigned:
            if self._store.services.get(service.id) is not service:
                # The reconciler has come to a conclusion, or the service is gone.
                raise InvalidParameter(OUT_OF_SEQUENCE)
            self._check_references(spec)
            with in_sequence(guarded=True):
                await self._store.save(assigned, alone=seen)
        return changed

    async def remove(self, reference: str) -> None:
        service = self.find(reference)
        await self._store.delete(service)
        self._events.publish("service", "remove", service.id, {"name": service.spec.name})
        self._reconciler.wake(service.id)

    async def leave(self, force: bool) -> None:
        """Give up the swarm: services, tasks and their containers go with it."""
        async with self._changing:
            if self.cluster.worker is not None:
                await self.node_role.leave_others()
                return
            if self.cluster.parting:
                # What a former try did not come to the end of.
                await self.clear()
                return
            own_store = force and self._etcd_membership.here
            if own_store and self.cluster.away:
                await self._leave_unheard()
                return
            try:
                await self.cluster.leave(force)
            except StoreUnavailable:
                if not own_store:
                    raise
                await self._leave_unheard()
                return
            await self._workers.close(for_good=True)
            await self.clear()

    async def _leave_unheard(self) -> None:
        """Most managers are away, so nobody can be told: what is on this host goes, and the others find out."""
        log.warning("this node leaves its swarm, and no other manager hears of it")
        await self._workers.close()
        await self.listener.close()
        await self._runner.close()
        await self.node_role.manager_role.lay_down(heard=False)
        failures = await self._runner.remove_all()
        await self.certificates.forget()
        await self.cluster.forget()
        await self._endpoints.settle()
        await self.networks.leave()
        # Where the records have never been known they wait for them: there may be another swarm now.
        self._reconciler.start()
        self._agent.start()
        if failures:
            raise failures[0]

    async def close(self) -> None:
        await self.node_role.close()

    async def open(self) -> None:
        """Go on from where the last daemon was, be it in the middle of leaving."""
        if self.cluster.unreadable:
            return
        await self.cluster.open()
        if (place := self.cluster.membership) is not None and place.restoring:
            await self.backups.go_on()
        if (membership := self.cluster.worker) is not None:
            try:
                await self.node_role.work(membership)
            except HuskError as error:
                self.node_role.trouble = error.message
                log.error("this node cannot work for its swarm: %s", error.message)
        elif self.cluster.active:
            await self.started()
        elif self._store.shared and not self.cluster.node_id:
            # A swarm of others.
            return
        elif self._store.services or self._store.tasks or self.cluster.node_id or self.networks.any():
            await self.clear()

    async def clear(self) -> None:
        """Drop what belongs to a swarm that is gone."""
        failures: list[HuskError] = []
        await self.listener.close()
        if self.cluster.others:
            # Theirs stay; the leader finds other nodes for what ran here.
            await self._runner.forget_all()
            # What was taken from this node while it was away.
            failures = await self._runner.remove_all()
        else:
            await self._store.delete(*self._store.services.values())
            await self._runner.forget_all()
            # What no node had.
            await self._store.delete(*self._store.tasks.values())
            await self.secrets.clear()
            await self.configs.clear()
            await self.networks.clear()
        await self.certificates.forget()
        await self.node_role.manager_role.lay_down()
        await self.cluster.forget()
        await self._endpoints.settle()
        await self.networks.leave()
        for failure in failures:
            log.error("a container of a task outlives the swarm: %s", failure.message)

    async def update_node(self, reference: str, spec: NodeSpec, version: int) -> None:
        if spec.role.lower() == "manager" and not self._store.shared:
            version = await self._make_room(reference, version)
        before, node = await self.nodes.update(reference, spec, version)
        attributes = {"name": node.description.hostname}
        if node.spec.availability != before.spec.availability:
            attributes |= {"availability.old": before.spec.availability, "availability.new": node.spec.availability}
        if node.spec.role != before.spec.role:
            attributes |= {"role.old": before.spec.role, "role.new": node.spec.role}
            # Its node is to hear of it now.
            self.listener.open()
        self._events.publish("node", "update", node.id, attributes)
        self._reconciler.wake()

    async def _make_room(self, reference: str, version: int) -> int:
        """Before a worker is promoted: the version that its record has when there can be several managers."""
        node = self.nodes.find(reference)
        if node.is_manager or node.version != version:
            return version
        await self.node_role.manager_role.several()
        return self.nodes.find(node.id).version

    async def remove_node(self, reference: str, force: bool) -> None:
        node = await self.nodes.remove(reference, force)
        self.listener.dropped(node.id)
        self._events.publish("node", "remove", node.id, {"name": node.description.hostname})
        self._reconciler.wake()

    def on_network(self, network: Network) -> dict[str, ServiceOnNetwork]:
        """The services that a network knows, by name."""
        return self._endpoints.on_network(network)

    # --- tasks

    def find_task(self, reference: str) -> Task:
        self._require_swarm()
        return resolve(self._store.tasks, {}, reference, "task")

    def tasks(self, filters: Filters) -> list[Task]:
        self._require_swarm()
        wanted = self._services_named(filters.get("service"))
        nodes = {self.nodes.find(reference).id for reference in filter(None, filters.get("node"))}
        for state in filters.get("desired-state"):
            if state.lower() not in ("", *get_args(TaskState)):
                raise InvalidParameter(f"Invalid desired-state filter: '{state}'")
        versions = {service.id: service.spec_version for service in self._store.services.values()}
        return [t for t in self._store.tasks.values() if task_matches(t, filters, wanted, nodes, versions)]

    def tasks_of(self, service: Service) -> list[Task]:
        return self._store.index.of_service(service.id)

    def alive_tasks(self) -> set[str]:
        return {task.id for task in self._store.tasks.values() if task.alive}

    def places_of(self, task: Task) -> list[tuple[Network, str]]:
        """The networks of the swarm that a task is on, with its addresses there."""
        if task.node_id == self.cluster.node_id:
            with contextlib.suppress(HuskError):
                return self.networks.places_of(self._containers.find(task.status.container_id))
        return self.networks.places_elsewhere(task.id)

    # --- helpers

    def _require_swarm(self) -> None:
        """Raise where there is no swarm."""
        _ = self.cluster.swarm

    async def _check(self, spec: ServiceSpec, *former: ServiceSpec | None) -> None:
        # Its templates may be hundreds of KiB.
        await asyncio.to_thread(validate.check, spec, former)
        self._check_references(spec)

    def _check_references(self, spec: ServiceSpec) -> None:
        """Raise where a service relies on what is not there. Also right before it is written: who removes such a thing
        looks for services that rely on it, and each of the two knows what the other has written."""
        self.secrets.check_references(spec.task_template.container_spec)
        self.configs.check_references(spec.task_template.container_spec)
        self.networks.resolve(spec)

    def _names(self) -> dict[str, str]:
        return {service.spec.name: service.id for service in self._store.services.values()}

    def _services_named(self, references: list[str]) -> set[str] | None:
        if not references:
            return None
        return {self.find(reference).id for reference in references}

    def _ports(self, service: Service, spec: ServiceSpec) -> list[PortConfig]:
        result = published_ports(service, spec, self._store.services.values())
        self.networks.check_ports(result)
        return result
