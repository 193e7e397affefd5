"""The swarm that this engine is: one node, manager and worker at once, and the settings all services share.

A swarm with autolock is locked after each start of the daemon: what it declares can neither be seen nor changed, and no
secret is read, until somebody brings the unlock key. Its services are kept going meanwhile, but for new tasks that need
a secret or a config.
"""

import asyncio
import base64
import secrets

import msgspec
from msgspec import Struct

from husk.config import AddressPool
from husk.engine.model.clock import now_ns, rfc3339
from husk.engine.services import settings
from husk.engine.services.ids import new_id
from husk.engine.services.machine import Machine
from husk.engine.services.placement import NodeFacts
from husk.engine.services.settings import DATA_PATH_PORT, CAConfig, NodeSpec, SwarmSpec
from husk.errors import Conflict, InvalidParameter, NotFound, Unauthorized, Unavailable
from husk.gojson import Reader, parse_document
from husk.storage.secrets.locks import UNLOCK_KEY_BYTES
from husk.storage.secrets.sealing import Sealer
from husk.storage.state.store import Change, StateStore

KIND = "swarm"
NOT_A_MANAGER = (
    'This node is not a swarm manager. Use "docker swarm init" or "docker swarm join" to connect this node to swarm '
    "and try again."
)
UNREADABLE = "The record of this node's swarm cannot be read: see husk doctor --check-store."
ALREADY_ONE = 'This node is already part of a swarm. Use "docker swarm leave" to leave this swarm and join another one.'
LOCKED = (
    'Swarm is encrypted and needs to be unlocked before it can be used. Please use "docker swarm unlock" to unlock it.'
)
KEY_PREFIX = "SWMKEY-1-"


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
    default_address_pool: list[str] = []
    subnet_size: int = 24
    data_path_port: int = DATA_PATH_PORT
    # An ingress network that somebody removes is not made again.
    ingress_made: bool = False

    @property
    def autolock(self) -> bool:
        return self.spec.encryption_config.auto_lock_managers


_record = Reader(Swarm)


class Cluster:
    """The swarm, if there is one."""

    def __init__(self, state: StateStore, sealer: Sealer, engine_labels: dict[str, str], machine: Machine) -> None:
        self._state = state
        self._sealer = sealer
        self._changing = asyncio.Lock()
        self._engine_labels = engine_labels
        self._machine = machine
        # Records of the first releases hold parts of the settings as their client wrote them, `null` and all.
        records = list(state.read(KIND, lambda body: _record.read(parse_document(body))).values())
        self._swarm: Swarm | None = records[0] if records else None
        if not self.unreadable:
            sealer.settle(self._swarm is not None and self._swarm.autolock)

    @property
    def unreadable(self) -> bool:
        """There is a swarm, but its record cannot be read: nothing is done for it, and no other is made."""
        return bool(self._state.aside(KIND))

    @property
    def active(self) -> bool:
        return self._swarm is not None

    @property
    def locked(self) -> bool:
        return self._swarm is not None and self._sealer.locked

    @property
    def record(self) -> Swarm:
        """For the engine itself, locked or not."""
        if self._swarm is None:
            raise Unavailable(UNREADABLE if self.unreadable else NOT_A_MANAGER)
        return self._swarm

    @property
    def swarm(self) -> Swarm:
        """For clients."""
        if self.locked:
            raise Unavailable(LOCKED)
        return self.record

    @property
    def pools(self) -> tuple[AddressPool, ...]:
        """Where the subnets of the swarm's networks come from."""
        record = self.record
        return tuple(AddressPool(base, record.subnet_size) for base in record.default_address_pool)

    async def note_ingress(self) -> None:
        async with self._changing:
            self.record.ingress_made = True
            await self._save(self.record)

    def node_facts(self) -> NodeFacts:
        swarm = self.record
        return NodeFacts(
            id=swarm.node_id,
            hostname=self._machine.hostname,
            role=swarm.node_spec.role,
            availability=swarm.node_spec.availability,
            architecture=self._machine.architecture,
            address=swarm.advertise_address,
            labels=swarm.node_spec.labels,
            engine_labels=self._engine_labels,
            nano_cpus=self._machine.cpus * 10**9,
            memory=self._machine.memory,
        )

    async def init(
        self,
        spec: SwarmSpec,
        *,
        advertise: str,
        availability: str,
        pools: list[str],
        subnet_size: int,
        data_path_port: int,
    ) -> str:
        """Make this engine a swarm of one; the node's id."""
        settings.check_availability(availability)
        settings.check(spec, CAConfig())
        now = rfc3339(now_ns())
        swarm = Swarm(
            id=new_id(),
            version=10,
            created_at=now,
            updated_at=now,
            spec=settings.initial(spec),
            node_id=new_id(),
            node_version=10,
            node_updated_at=now,
            node_spec=NodeSpec(availability=availability or "active"),
            advertise_address=advertise,
            worker_token=_token(),
            manager_token=_token(),
            default_address_pool=pools or ["10.0.0.0/8"],
            subnet_size=subnet_size or 24,
            data_path_port=settings.data_path_port(data_path_port),
        )
        async with self._changing:
            self.check_alone()
            await self._save_locked(swarm, was=False)
        return swarm.node_id

    async def update(
        self, spec: SwarmSpec, version: int, *, worker_token: bool, manager_token: bool, unlock_key: bool
    ) -> None:
        async with self._changing:
            swarm = self.swarm
            if version != swarm.version:
                raise InvalidParameter("rpc error: code = Unknown desc = update out of sequence")
            settings.check(spec, swarm.spec.ca_config)
            changed = msgspec.structs.replace(
                swarm, spec=settings.changed(spec), version=version + 1, updated_at=rfc3339(now_ns())
            )
            if worker_token:
                changed.worker_token = _token()
            if manager_token:
                changed.manager_token = _token()
            await self._save_locked(changed, was=swarm.autolock, rotate=unlock_key)

    def check_alone(self) -> None:
        """Raise where this node is in a swarm, which it would have to leave first."""
        if self._swarm is not None:
            raise Unavailable(ALREADY_ONE)
        if self.unreadable:
            raise Unavailable(UNREADABLE)

    async def unlock_key(self) -> str:
        """What opens the swarm after a start of the daemon; empty where nothing is needed."""
        async with self._changing:
            return write_key(await asyncio.to_thread(self._sealer.unlock_key)) if self.swarm.autolock else ""

    async def unlock(self, key: str) -> None:
        async with self._changing:
            if not self.locked:
                _ = self.record
                raise Conflict("swarm is not locked")
            if not await asyncio.to_thread(self._sealer.unlock, read_key(key)):
                raise Unauthorized("swarm could not be unlocked: invalid key provided")

    async def update_node(self, node_id: str, spec: NodeSpec, version: int) -> None:
        settings.check_availability(spec.availability)
        async with self._changing:
            swarm = self.find_node(node_id)
            if version != swarm.node_version:
                raise InvalidParameter("rpc error: code = Unknown desc = update out of sequence")
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
            or reference == self._machine.hostname
            or (reference and swarm.node_id.startswith(reference))
        ):
            return swarm
        raise NotFound(f"node {reference} not found")

    async def leave(self, force: bool) -> None:
        swarm = self.record
        if not force and self.locked:
            raise Unavailable(
                "Swarm is encrypted and locked. Please unlock it first or use `--force` to ignore this message."
            )
        if not force:
            raise Unavailable(
                "You are attempting to leave the swarm on a node that is participating as a manager. Removing the last "
                "manager erases all current state of the swarm. Use `--force` to ignore this message."
            )
        self._swarm = None
        await self._state.commit(Change(KIND, swarm.id, None))

    async def forget_keys(self) -> None:
        """Nothing is left that they open."""
        await asyncio.to_thread(self._sealer.forget)

    async def _save_locked(self, swarm: Swarm, *, was: bool, rotate: bool = False) -> None:
        """Save a record that may lock or unlock the swarm: the record decides, so each file is there before it."""
        if swarm.autolock and not was:
            await asyncio.to_thread(self._sealer.lock, _new_key())
        elif swarm.autolock and rotate:
            old = await asyncio.to_thread(self._sealer.unlock_key)
            await asyncio.to_thread(self._sealer.lock, _new_key(), besides=old)
        elif was and not swarm.autolock:
            await asyncio.to_thread(self._sealer.keep_open)
        await self._save(swarm)
        if swarm.autolock:
            await asyncio.to_thread(self._sealer.keep_locked)
        elif was:
            await asyncio.to_thread(self._sealer.drop_lock)

    async def _save(self, swarm: Swarm) -> None:
        await self._state.commit(Change(KIND, swarm.id, msgspec.json.encode(swarm)))
        self._swarm = swarm


def write_key(key: bytes) -> str:
    return KEY_PREFIX + base64.b64encode(key).decode().rstrip("=")


def read_key(text: str) -> bytes:
    """Docker's form of an unlock key: SWMKEY-1-<base64>."""
    encoded = text.strip().removeprefix(KEY_PREFIX)
    try:
        if not text.strip().startswith(KEY_PREFIX) or not encoded:
            raise ValueError
        return base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except ValueError:
        raise InvalidParameter("invalid key string") from None


def _new_key() -> bytes:
    return secrets.token_bytes(UNLOCK_KEY_BYTES)


def _token() -> str:
    return f"SWMTKN-1-{secrets.token_hex(25)}-{secrets.token_hex(12)}"
