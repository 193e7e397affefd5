"""The nodes of the swarm: what `docker node` shows and changes."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import msgspec

from husk.engine.model.filters import Filters
from husk.errors import InvalidParameter
from husk.swarm.membership.cluster import Cluster
from husk.swarm.model import settings
from husk.swarm.model.clocks import CLOCK, Clock
from husk.swarm.model.node import MANAGERS, Node, NodeDescription, NodeState, NodeStatus, manager_at
from husk.swarm.model.settings import NodeSpec
from husk.swarm.state.records import OUT_OF_SEQUENCE, SwarmRecords, in_sequence, resolve

_REFUSED = "rpc error: code = FailedPrecondition desc = "
_WORDS = {"role": ("manager", "worker"), "membership": ("accepted", "pending")}


async def _nobody_asks(node: Node) -> None:
    """Spare any manager: where managers have no etcd of their own, none of them counts for the others."""


class Changed(NamedTuple):
    before: Node
    after: Node


class Nodes:
    """For clients: raises where there is no swarm, or it is locked."""

    def __init__(
        self,
        store: SwarmRecords,
        cluster: Cluster,
        clock: Clock = CLOCK,
        *,
        spare: Callable[[Node], Awaitable[None]] = _nobody_asks,
    ) -> None:
        """`spare` raises where the swarm cannot do without a manager now."""
        self._store = store
        self._clock = clock
        self._cluster = cluster
        self._spare = spare

    @property
    def leader(self) -> str:
        """The id of the node whose reconciler plans; empty while there is none."""
        leadership = self._store.leadership
        return leadership.leader or (self._cluster.node_id if leadership.leading else "")

    def find(self, reference: str) -> Node:
        """By `self`, id, name, or unique leading part of an id."""
        _ = self._cluster.swarm
        if reference == "self":
            return self._cluster.node
        same = [node.id for node in self._store.nodes.values() if node.description.hostname == reference]
        if len(same) > 1 and reference not in self._store.nodes:
            raise InvalidParameter(f"node {reference} is ambiguous ({len(same)} matches found)")
        names = {reference: same[0]} if same else {}
        return resolve(self._store.nodes, names, reference, "node")

    def listing(self, filters: Filters) -> list[Node]:
        _ = self._cluster.swarm
        words = {key: _known(filters, key) for key in _WORDS}
        return [node for node in self._store.nodes.values() if _matches(node, filters, words)]

    async def update(self, reference: str, spec: NodeSpec, version: int) -> Changed:
        """Change the specification of a node, on the version that the client has seen."""
        role, availability = settings.role(spec.role), settings.availability(spec.availability)

        async def attempt() -> Changed:
            seen = self._store.guard(MANAGERS)
            node = self.find(reference)
            if version != node.version:
                raise InvalidParameter(OUT_OF_SEQUENCE)
            wanted = NodeSpec(
                name=spec.name,
                labels=spec.labels,
                role=role or node.spec.role,
                availability=availability or node.spec.availability,
            )
            demoted = node.is_manager and wanted.role == "worker"
            if demoted and len(self.managers()) == 1:
                raise InvalidParameter(_REFUSED + "attempting to demote the last manager of the swarm")
            if demoted:
                await self._spare(node)
            manager = (node.manager or manager_at(node.status.addr)) if wanted.role == "manager" else None
            changed = msgspec.structs.replace(node, spec=wanted, manager=manager)
            # Of two managers that demote each other one is told of the other, and that it is the last.
            changes = wanted.role != node.spec.role
            with in_sequence(guarded=changes):
                await self._store.save(changed, alone=seen if changes else "")
            return Changed(node, changed)

        return await self._store.retried(attempt)

    async def remove(self, reference: str, force: bool) -> Node:
        """Forget a node: one that is down, or any worker with `force`."""
        return await self._store.retried(lambda: self._remove(reference, force))

    async def _remove(self, reference: str, force: bool) -> Node:
        node = self.find(reference)
        if node.is_manager:
            raise InvalidParameter(
                f"{_REFUSED}node {node.id} is a cluster manager and is a member of the raft cluster. It must be "
                "demoted to worker before removal"
            )
        if node.status.state != "down" and not force:
            raise InvalidParameter(f"{_REFUSED}node {node.id} is not down and can't be removed")
        # Another manager may have promoted it, and stepped down itself.
        await self._store.delete(node, alone=MANAGERS)
        return node

    # --- for the swarm itself, locked or not

    def managers(self) -> list[Node]:
        return [node for node in self._store.nodes.values() if node.is_manager]

    def known(self, id: str) -> Node | None:
        return self._store.nodes.get(id)

    async def forget(self, id: str) -> None:
        """A manager that could not become one goes as if it had never come."""
        await self._store.retried(lambda: self._forget(id))

    async def _forget(self, id: str) -> None:
        if (node := self._store.nodes.get(id)) is None:
            return
        if node.is_manager and len(self.managers()) == 1:
            raise InvalidParameter(_REFUSED + "attempting to remove the last manager of the swarm")
        await self._store.delete(node, alone=MANAGERS)

    async def describe(self, id: str, description: NodeDescription) -> None:
        """Save what a node says of itself, where that is news."""

        def change(node: Node) -> Node:
            return msgspec.structs.replace(node, description=description)

        if (node := self._store.nodes.get(id)) is not None and node.description != description:
            await self._amend(id, change)

    async def mark(self, id: str, state: NodeState, message: str = "") -> None:
        """Save the state of a node; nothing is written where that is known."""

        def change(node: Node) -> Node:
            status = NodeStatus(state=state, addr=node.status.addr, message=message, since_ns=self._clock.now())
            return msgspec.structs.replace(node, status=status)

        node = self._store.nodes.get(id)
        if node is not None and (node.status.state, node.status.message) != (state, message):
            await self._amend(id, change)

    async def _amend(self, id: str, change: Callable[[Node], Node]) -> None:
        if (node := self._store.nodes.get(id)) is not None:
            await self._store.amend(node, change)


def _known(filters: Filters, key: str) -> list[str]:
    values = [value.lower() for value in filters.get(key) if value]
    for value in values:
        if value not in _WORDS[key]:
            raise InvalidParameter(f"Invalid {key} filter: '{value}'")
    return values


def _matches(node: Node, filters: Filters, words: dict[str, list[str]]) -> bool:
    names = filters.get("name")
    return (
        (not filters.get("id") or any(node.id.startswith(value) for value in filters.get("id")))
        and (not names or any(node.description.hostname.startswith(name) for name in names))
        and (not words["role"] or node.spec.role in words["role"])
        and (not words["membership"] or "accepted" in words["membership"])
        and Filters({"label": filters.get("node.label")}).matches_labels(node.spec.labels)
        and filters.matches_labels(node.description.engine_labels)
    )
