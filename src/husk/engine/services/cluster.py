"""What is the swarm that this engine is? One node, manager and worker at once, and the settings all services share."""

import os
import secrets
import socket

import msgspec
from msgspec import Struct, field

from husk.engine.clock import now_ns, rfc3339
from husk.engine.services.ids import new_id
from husk.engine.services.placement import NodeFacts
from husk.errors import InvalidParameter, NotFound, Unavailable
from husk.storage.state import Change, StateStore

KIND = "swarm"
NOT_A_MANAGER = (
    'This node is not a swarm manager. Use "docker swarm init" or "docker swarm join" to connect this node to swarm '
    "and try again."
)


class Orchestration(Struct, kw_only=True, rename="pascal"):
    task_history_retention_limit: int = 5


class EncryptionConfig(Struct, kw_only=True, rename="pascal"):
    auto_lock_managers: bool = False


class SwarmSpec(Struct, kw_only=True, rename="pascal"):
    name: str = "default"
    labels: dict[str, str] = {}
    orchestration: Orchestration = field(default_factory=Orchestration)
    raft: dict[str, object] = {}
    dispatcher: dict[str, object] = {}
    ca_config: dict[str, object] = field(default_factory=dict, name="CAConfig")
    encryption_config: EncryptionConfig = field(default_factory=EncryptionConfig)
    task_defaults: dict[str, object] = {}


class NodeSpec(Struct, kw_only=True, rename="pascal"):
    name: str = ""
    labels: dict[str, str] = {}
    role: str = "manager"
    availability: str = "active"


class Swarm(Struct, kw_only=True):
    """The record of the swarm and of its node."""

    id: str
    version: int
    created_at: str
    updated_at: str
    spec: SwarmSpec
    node_id: str
    node_version: int
    node_updated_at: str
    node_spec: NodeSpec
    advertise_address: str
    worker_token: str
    manager_token: str
    unlock_key: str
    default_address_pool: list[str] = []
    subnet_size: int = 24
    data_path_port: int = 4789


class Cluster:
    """The swarm, if there is one."""

    def __init__(self, state: StateStore, engine_labels: dict[str, str], memory: int) -> None:
        self._state = state
        self._engine_labels = engine_labels
        self.memory = memory
        records = [msgspec.json.decode(body, type=Swarm) for body in state.load(KIND).values()]
        self._swarm: Swarm | None = records[0] if records else None

    @property
    def active(self) -> bool:
        return self._swarm is not None

    @property
    def swarm(self) -> Swarm:
        if self._swarm is None:
            raise Unavailable(NOT_A_MANAGER)
        return self._swarm

    def node_facts(self) -> NodeFacts:
        swarm = self.swarm
        return NodeFacts(
            id=swarm.node_id,
            hostname=socket.gethostname(),
            role=swarm.node_spec.role,
            availability=swarm.node_spec.availability,
            architecture=os.uname().machine,
            address=swarm.advertise_address,
            labels=swarm.node_spec.labels,
            engine_labels=self._engine_labels,
            nano_cpus=(os.cpu_count() or 1) * 10**9,
            memory=self.memory,
        )

    async def init(self, spec: SwarmSpec, advertise: str, availability: str, pools: list[str], subnet_size: int) -> str:
        """Make this engine a swarm of one; the node's id."""
        if self._swarm is not None:
            raise Unavailable(
                'This node is already part of a swarm. Use "docker swarm leave" to leave this swarm and join another '
                "one."
            )
        check_availability(availability)
        now = rfc3339(now_ns())
        swarm = Swarm(
            id=new_id(),
            version=10,
            created_at=now,
            updated_at=now,
            spec=spec,
            node_id=new_id(),
            node_version=10,
            node_updated_at=now,
            node_spec=NodeSpec(availability=availability or "active"),
            advertise_address=advertise,
            worker_token=_token(),
            manager_token=_token(),
            unlock_key="SWMKEY-1-" + secrets.token_urlsafe(32),
            default_address_pool=pools or ["10.0.0.0/8"],
            subnet_size=subnet_size or 24,
        )
        await self._save(swarm)
        return swarm.node_id

    async def update(
        self, spec: SwarmSpec, version: int, *, worker_token: bool, manager_token: bool, unlock_key: bool
    ) -> None:
        swarm = self.swarm
        if version != swarm.version:
            raise InvalidParameter("rpc error: code = Unknown desc = update out of sequence")
        swarm.spec = spec
        swarm.version += 1
        swarm.updated_at = rfc3339(now_ns())
        if worker_token:
            swarm.worker_token = _token()
        if manager_token:
            swarm.manager_token = _token()
        if unlock_key:
            swarm.unlock_key = "SWMKEY-1-" + secrets.token_urlsafe(32)
        await self._save(swarm)

    async def update_node(self, node_id: str, spec: NodeSpec, version: int) -> None:
        swarm = self.find_node(node_id)
        if version != swarm.node_version:
            raise InvalidParameter("rpc error: code = Unknown desc = update out of sequence")
        check_availability(spec.availability)
        if spec.role not in ("manager", ""):
            raise InvalidParameter(
                "rpc error: code = FailedPrecondition desc = can't demote the last manager of the swarm"
            )
        swarm.node_spec = msgspec.structs.replace(
            spec, role="manager", availability=spec.availability or swarm.node_spec.availability
        )
        swarm.node_version += 1
        swarm.node_updated_at = rfc3339(now_ns())
        await self._save(swarm)

    def find_node(self, reference: str) -> Swarm:
        swarm = self.swarm
        if (
            reference == "self"
            or reference == socket.gethostname()
            or (reference and swarm.node_id.startswith(reference))
        ):
            return swarm
        raise NotFound(f"node {reference} not found")

    async def leave(self, force: bool) -> None:
        swarm = self.swarm
        if not force:
            raise Unavailable(
                "You are attempting to leave the swarm on a node that is participating as a manager. Removing the last "
                "manager erases all current state of the swarm. Use `--force` to ignore this message."
            )
        self._swarm = None
        await self._state.commit(Change(KIND, swarm.id, None))

    async def _save(self, swarm: Swarm) -> None:
        await self._state.commit(Change(KIND, swarm.id, msgspec.json.encode(swarm)))
        self._swarm = swarm


def check_availability(text: str) -> None:
    if text.lower() not in ("", "active", "pause", "drain"):
        raise InvalidParameter(f'invalid Availability: "{text}"')


def _token() -> str:
    return f"SWMTKN-1-{secrets.token_hex(25)}-{secrets.token_hex(12)}"
