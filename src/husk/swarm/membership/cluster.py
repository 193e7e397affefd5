"""The swarm that this engine is part of, and the settings all services share.

A swarm with autolock is locked after each start of the daemon: what it declares can neither be seen nor changed, and no
secret is read, until somebody brings the unlock key. Its services are kept going meanwhile, but for new tasks that need
a secret or a config.
"""

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from husk.config import AddressPool, ClusterStoreConfig
from husk.errors import Conflict, HuskError, InvalidParameter, Unavailable
from husk.storage.secrets.sealing import Sealer
from husk.storage.state.store import Change, StateStore
from husk.swarm.ca import roots
from husk.swarm.ca.tokens import WRONG_TOKEN, new_token
from husk.swarm.membership import former_records, join_tokens
from husk.swarm.membership.autolock import Autolock
from husk.swarm.membership.founding import Home, first_node, new_swarm
from husk.swarm.model import refusals, settings
from husk.swarm.model.clocks import CLOCK, Clock
from husk.swarm.model.node import MANAGERS, Machine, Node, NodeDescription, describe
from husk.swarm.model.placement import NodeFacts
from husk.swarm.model.settings import SwarmSpec
from husk.swarm.model.swarm import KEY, KIND, MEMBERSHIP, SELF, Membership, Swarm
from husk.swarm.signals import AwaitedSignal
from husk.swarm.state.records import OUT_OF_SEQUENCE, SwarmRecords, in_sequence
from husk.text.endpoints import MANAGER_PORT

# In seconds: how long whoever unlocks a swarm waits for its store, and how often it is looked at meanwhile.
PATIENCE, LOOK = 12.0, 0.1


class Cluster:
    """The swarm, if there is one."""

    def __init__(
        self,
        state: StateStore,
        store: SwarmRecords,
        sealer: Sealer,
        engine_labels: dict[str, str],
        machine: Machine,
        subnets: Callable[[], Awaitable[Sequence[str]]] | None = None,
        clock: Clock = CLOCK,
        patience: float = PATIENCE,
    ) -> None:
        """`subnets` asks the host what it reaches by other ways than the swarm's networks."""
        self._patience = patience
        self._ask_subnets = subnets
        self._clock = clock
        self._subnets: Sequence[str] = ()
        self._state = state
        self._store = store
        self._sealer = sealer
        self._autolock = Autolock(sealer)
        self._changing = asyncio.Lock()
        self._engine_labels = engine_labels
        self._machine = machine
        # Why nobody can reach our cluster port.
        self.port_trouble = ""
        self._membership = state.records(MEMBERSHIP, Membership).get(SELF)
        # The same as the next daemon would find it.
        self.noted = self._membership
        # While a worker becomes a manager, or a manager a worker: its place as a worker.
        self.between: Membership | None = None
        # While it is on its way into a swarm.
        self.joining = False
        # It has been unlocked; and its record may ask for another lock.
        self.opened, self.locking = AwaitedSignal[[]](), AwaitedSignal[[]]()
        if store.shared:
            self._autolock.look()
        elif not self.unreadable:
            self._autolock.settle(store.swarm)

    async def open(self) -> None:
        """Bring old records into their present form, and tell the swarm what this host is now."""
        await self.look_around()
        if self._store.shared:
            async with self._changing:  # whoever has unlocked it may follow others' lock by now
                await asyncio.to_thread(self._autolock.settle, self._store.swarm)
        elif self._store.swarm is not None and KEY not in self._store.swarms:
            if (node := await former_records.node_of(self._store)) is not None:
                node = msgspec.structs.replace(node, description=self.description())
                await self._join(Membership(node_id=node.id, advertise_address=node.status.addr))
                await former_records.bring_up(self._store, self._store.swarm, node)
        elif self._store.swarm is not None and self._membership is None and len(self._store.nodes) == 1:
            # Its record was damaged, and put aside by the doctor.
            only = self.nodes[0]
            await self._join(Membership(node_id=only.id, advertise_address=only.status.addr))
        await self.describe_self()
        await self._trust()

    async def describe_self(self) -> None:
        """Tell the swarm what this host is now, where that is news."""
        await self.look_around()
        if self.active and (own := self._store.nodes.get(self.node_id)) is not None:
            described = self.description()
            if own.description != described:

                def change(node: Node) -> Node:
                    return msgspec.structs.replace(node, description=described)

                await self._store.amend(own, change)

    async def _trust(self) -> None:
        if not self.locked and not self.unreadable:
            await former_records.with_trust(self._store, self._sealer)
            await former_records.with_sealed_tokens(self._store, self._sealer)

    @property
    def unreadable(self) -> bool:
        """There is a swarm, but its record cannot be read: nothing is done for it, and no other is made."""
        own = ("node", self.node_id)
        swarm = any(kind == KIND for kind, _ in self._store.unreadable)
        return swarm or own in self._store.unreadable or bool(self._state.aside(MEMBERSHIP))

    @property
    def active(self) -> bool:
        if self._store.shared and self.node_id not in self._store.nodes:
            return False
        return self._store.swarm is not None and self._membership is not None and self.worker is None

    @property
    def pending(self) -> bool:
        """It joins a swarm now, or is in one whose records are not known yet: their store has not answered since the
        start."""
        if self.active or self.worker is not None:
            return False
        return self.joining or (self._unheard and not self.locked)

    @property
    def _unheard(self) -> bool:
        """True while the host is in a swarm whose records are not known yet."""
        there = self._store.shared and self._membership is not None and self.worker is None
        return there and not self.active and bool(self._store.away())

    @property
    def parting(self) -> bool:
        """It was a manager of a swarm that is gone, or that has removed it, and something of that may be left here."""
        there = self._membership is not None and self.worker is None and self.between is None
        return there and not self.active and not self.pending and not self._unheard and not self.unreadable

    @property
    def away(self) -> str:
        """The reason why the swarm's records cannot be asked for or changed now; empty while they can."""
        return self._store.away()

    @property
    def others(self) -> bool:
        """True if the swarm has other managers."""
        return any(node.id != self.node_id and node.is_manager for node in self.nodes)

    @property
    def locked(self) -> bool:
        return (self.active or self._unheard) and self._autolock.locked

    @property
    def record(self) -> Swarm:
        """For the engine itself, locked or not."""
        if (swarm := self._store.swarm) is None or not self.active:
            raise Unavailable(self._why_not())
        return swarm

    def _why_not(self) -> str:
        if self.unreadable:
            return refusals.UNREADABLE
        if self.place is not None:
            return refusals.A_WORKER
        if self.locked:
            return refusals.LOCKED
        return (self.pending and self._store.away()) or refusals.NOT_A_MANAGER

    @property
    def worker(self) -> Membership | None:
        """This host's place in a swarm that it works for; None for a manager, and where there is none."""
        return self._membership if self._membership is not None and self._membership.role == "worker" else None

    @property
    def place(self) -> Membership | None:
        """That of `worker`, also while this host is about to be one, or was one and is no manager yet."""
        return self.worker or (None if self.active and not self.away else self.between)

    @property
    def swarm(self) -> Swarm:
        """For clients."""
        if self.active and (reason := self._store.away()):
            raise Unavailable(reason)
        if self.locked:
            raise Unavailable(refusals.LOCKED)
        return self.record

    @property
    def shown(self) -> Swarm:
        """For clients, with the join tokens as they type them."""
        return join_tokens.shown(self.swarm, self._sealer)

    def description(self, *, overlays: bool = True) -> NodeDescription:
        """Describe this host as it is now, for the swarm."""
        return describe(self._machine, self._engine_labels, overlays=overlays, subnets=self._subnets)

    async def look_around(self) -> None:
        """Know which subnets this host uses now, for its next description."""
        if self._ask_subnets is not None:
            self._subnets = await self._ask_subnets()

    @property
    def pools(self) -> tuple[AddressPool, ...]:
        """The address ranges that the subnets of the swarm's networks are taken from."""
        record = self.record
        return tuple(AddressPool(base, record.subnet_size) for base in record.default_address_pool)

    @property
    def node_id(self) -> str:
        """The id of this host's node; empty where the host is in no swarm."""
        return self._membership.node_id if self._membership is not None else ""

    @property
    def advertise_address(self) -> str:
        """By which other nodes reach this one."""
        return self._membership.advertise_address if self._membership is not None else ""

    @property
    def listen_address(self) -> str:
        """Of the cluster port; empty for the usual one."""
        return self._membership.listen_address if self._membership is not None else ""

    @property
    def node(self) -> Node:
        """The node that this host is."""
        _ = self.record
        if (own := self._store.nodes.get(self.node_id)) is None:
            raise Unavailable(refusals.UNREADABLE if self.unreadable else refusals.NOT_A_MANAGER)
        return own

    @property
    def nodes(self) -> list[Node]:
        return list(self._store.nodes.values())

    def node_facts(self) -> NodeFacts:
        return self.node.facts

    async def note_ingress(self) -> None:
        async with self._changing:

            def change(swarm: Swarm) -> Swarm:
                return msgspec.structs.replace(swarm, ingress_made=True)

            await self._store.amend(self.record, change)

    async def init(
        self,
        spec: SwarmSpec,
        *,
        advertise: str,
        advertise_port: int = MANAGER_PORT,
        listen: str = "",
        availability: str,
        pools: list[str],
        subnet_size: int,
        data_path: str = "",
        data_path_port: int,
    ) -> str:
        """Make this engine a swarm of one; the node's id."""
        now = self._clock.stamp()
        await self.look_around()
        node = first_node(Home(advertise, advertise_port, data_path), availability, self.description(), now)
        swarm = new_swarm(spec, pools, subnet_size, data_path_port, now)
        async with self._changing:
            self.check_alone()
            if await self._store.has_swarm():
                raise Unavailable(refusals.HAS_ONE)
            await self._join(Membership(node_id=node.id, advertise_address=advertise, listen_address=listen))
            try:
                trust = await asyncio.to_thread(roots.first, spec.ca_config, self._sealer, self._clock.seconds())
                swarm = roots.with_tokens(msgspec.structs.replace(swarm, trust=trust))
                node = msgspec.structs.replace(node, issuer=trust.signing.key_id)
                await self._save_locked(swarm, node, was=False)
            except HuskError:
                await self._part()
                await self._autolock.forget()
                raise
        return node.id

    def check_token(self, token: str) -> None:
        """Raise where this daemon's store holds no swarm, or one whose managers join with another token."""
        if (swarm := self._store.swarm) is None:
            raise Unavailable(refusals.NO_SWARM)
        wanted = join_tokens.shown(swarm, self._sealer).manager_token
        if not secrets.compare_digest(token.encode(), wanted.encode()):
            raise InvalidParameter(WRONG_TOKEN)

    async def enrol(self, membership: Membership, *, happened: bool = False) -> None:
        """Take this place in a swarm, from now on and after the next start. No disk refuses what has `happened`."""
        await self._join(membership, happened)

    def assume(self, membership: Membership) -> None:
        """Take this place from now on; the next daemon has the one that was `noted`, until another one is."""
        self._membership = membership

    async def note(self, membership: Membership, *, happened: bool = False) -> None:
        """The next daemon has this place; this one as soon as it is to `assume` it."""
        write = self._state.settle if happened else self._state.commit
        await write(Change(MEMBERSHIP, SELF, msgspec.json.encode(membership)))
        self.noted = membership

    async def note_alone(self) -> None:
        """This host has no share in a store of the swarm any more, and the next daemon looks for none."""
        if self._membership is not None and self._membership.store:
            alone = msgspec.structs.replace(self._membership, store="", store_files=[], others=None, store_ports=None)
            await self._join(alone, happened=True)

    async def part(self) -> None:
        """Give up this host's place in a swarm, and what its keys open."""
        await self._autolock.forget()
        await self._part()

    @property
    def membership(self) -> Membership | None:
        """This host's place in a swarm."""
        return self._membership

    async def with_store_root(self) -> Swarm:
        """The swarm, with a CA for an etcd of its own."""
        async with self._changing:
            swarm = self.swarm
            if swarm.store_root is None:
                made = await asyncio.to_thread(roots.store_root, self._sealer, self._clock.seconds())

                def change(swarm: Swarm) -> Swarm:
                    return msgspec.structs.replace(swarm, store_root=made)

                await self._store.amend(swarm, change)
            return self.swarm

    async def follow_lock(self) -> None:
        """Another manager may have locked the swarm, or unlocked it: what is on this host's disk is to be alike."""
        async with self._changing:
            if (swarm := self._store.swarm) is not None and self.active:
                await self._autolock.follow(swarm)

    def shared_keys(self) -> tuple[bytes, bytes]:
        """Return the keys for a new manager: that of secrets, and that which opens it after a start, if any. Blocks."""
        return self._autolock.shared_keys(self.swarm)

    async def update(
        self, spec: SwarmSpec, version: int, *, worker_token: bool, manager_token: bool, unlock_key: bool
    ) -> None:
        async with self._changing:
            swarm = self.swarm
            if version != swarm.version:
                raise InvalidParameter(OUT_OF_SEQUENCE)
            settings.check(spec)
            trust = await asyncio.to_thread(roots.replaced, swarm, spec.ca_config, self._sealer, self._clock.seconds())
            root = trust.root.certificate.encode()
            changed = msgspec.structs.replace(
                swarm,
                spec=settings.changed(spec),
                trust=trust,
                worker_token=new_token(root) if worker_token else swarm.worker_token,
                manager_token=new_token(root) if manager_token else swarm.manager_token,
            )
            await self._save_locked(changed, was=swarm.autolock, rotate=unlock_key)

    def check_alone(self) -> None:
        """Raise where this node is in a swarm, which it would have to leave first."""
        if self.active or self.worker is not None:
            raise Unavailable(refusals.ALREADY_ONE)
        if self.unreadable:
            raise Unavailable(refusals.UNREADABLE)
        if reason := self._store.away():
            raise Unavailable(reason)

    async def unlock_key(self) -> str:
        """Return the key that opens the swarm after a start of the daemon; empty where none is needed."""
        async with self._changing:
            return await self._autolock.told() if self.swarm.autolock else ""

    async def unlock(self, key: str) -> None:
        async with self._changing:
            if not self.locked:
                _ = self.record
                raise Conflict("swarm is not locked")
            await self._autolock.unlock(key)
            try:
                await self.opened.emit()
            except BaseException:  # a client that leaves, too: whoever tries again begins anew
                self._autolock.shut()
                raise
        await self._heard()
        if self.active:
            await self._trust()

    async def _heard(self) -> None:
        """Let its store have a moment to answer, where that could not be asked before."""
        for _ in range(int(self._patience / LOOK)):
            if not self._unheard:
                break
            await asyncio.sleep(LOOK)

    async def leave(self, force: bool) -> None:
        if self._membership is None and not self.unreadable:
            raise Unavailable(refusals.IN_NO_SWARM)
        if not force and self.locked:
            raise Unavailable(
                "Swarm is encrypted and locked. Please unlock it first or use `--force` to ignore this message."
            )
        _ = self.record
        if not force:
            raise Unavailable(refusals.leaving(sum(node.is_manager for node in self._store.nodes.values())))
        await self._store.retried(self._give_up)

    async def _give_up(self) -> None:
        """Of two managers that leave at once, or while another is demoted, the last one ends the swarm."""
        if self.others:
            await self._store.delete(self.node, alone=MANAGERS)
        else:
            await self._store.delete(self.record, *self._store.nodes.values(), alone=MANAGERS)

    async def forget(self) -> None:
        """Nothing is left of the swarm here: neither what its keys open, nor a place in it."""
        if not self._store.shared:
            await self._store.delete(*self._store.nodes.values())
        await self._autolock.forget()
        await self._part()

    async def note_store(self, where: ClusterStoreConfig, others: dict[str, str] | None = None) -> None:
        """From now on, and for the next daemon, the swarm's records are there; `others` where it is our own etcd."""
        assert self._membership is not None, "only a swarm has records to be moved"
        files = [str(path) for path in where.certificates or ()]
        changed = {"store": where.address, "store_files": files, "others": others}
        await self._join(msgspec.structs.replace(self._membership, **changed))

    async def _part(self) -> None:
        await self._state.commit(Change(MEMBERSHIP, SELF, None))
        self._membership = self.noted = self.between = None

    async def _join(self, membership: Membership, happened: bool = False) -> None:
        """Before anything is written that belongs to the node."""
        await self.note(membership, happened=happened)
        self.assume(membership)

    async def _save_locked(self, swarm: Swarm, *others: Node, was: bool, rotate: bool = False) -> None:
        """Save a record that may lock or unlock the swarm."""

        async def write(swarm: Swarm) -> None:
            with in_sequence():
                await self._store.save(swarm, *others)
            # What fails there is told in `EtcdMembership.trouble`, and tried again by whoever follows the records.
            with contextlib.suppress(HuskError, OSError):
                await self.locking.emit()

        await self._autolock.save(swarm, write, was=was, rotate=rotate)
