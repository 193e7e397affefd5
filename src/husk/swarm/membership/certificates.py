"""The certificates of the swarm's nodes: our own, and those that the CA signs for others.

Our own lies below the data root, sealed as secrets are: that of a locked swarm is locked too. A manager that has none,
or one that will not do any more, makes another, for it has the CA. The record of a node says which root has signed the
certificate that it has shown last; when all have shown one of a new root, the old one goes.
"""

import asyncio
import contextlib
import logging
import zlib
from collections.abc import Coroutine
from pathlib import Path
from typing import TypeVar

import msgspec

from husk.aio.tasks import Tasks
from husk.errors import SystemFault
from husk.storage.secrets.sealing import Sealer
from husk.swarm import ca
from husk.swarm.ca import renewal, roots
from husk.swarm.ca.holders import Holder, Role
from husk.swarm.ca.identity import Identity, IdentityFiles, forget, supersede
from husk.swarm.membership import join_tokens
from husk.swarm.membership.cluster import Cluster
from husk.swarm.model.clocks import CLOCK, Clock
from husk.swarm.model.node import Node
from husk.swarm.model.services import SECOND
from husk.swarm.model.settings import SHORTEST_EXPIRY
from husk.swarm.model.swarm import Swarm, SwarmRoot
from husk.swarm.state.records import SwarmRecords

log = logging.getLogger(__name__)

T = TypeVar("T")

_CONTEXT = "the key of the node's certificate"
_USUAL_EXPIRY = 90 * 24 * 3600 * SECOND
_ROLES: tuple[Role, ...] = ("manager", "worker")


class NodeCertificates:
    def __init__(
        self,
        store: SwarmRecords,
        cluster: Cluster,
        sealer: Sealer,
        directory: Path,
        clock: Clock = CLOCK,
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._sealer = sealer
        self._directory = directory
        self._clock = clock
        self._changing = asyncio.Lock()
        self._changed = asyncio.Event()
        # Nodes that have shown a certificate of another root than their records say, and which.
        self._shown: dict[str, bytes] = {}
        self._noted = asyncio.Event()
        self._tasks = Tasks()

    # --- our own

    async def identity(self) -> Identity:
        """Return this node's identity: the one on the disk, or a new one where that will not do."""
        async with self._changing:
            kept = await asyncio.to_thread(self._load)
            if kept is not None and await asyncio.to_thread(self._wait, kept, 1.0) > 0:
                return kept
            return await self._renew()

    async def kept(self) -> Identity:
        """As it is on the disk, whatever role this node has by now."""
        if (found := await asyncio.to_thread(self.files().load)) is None:
            raise SystemFault("this node's certificate is gone: leave the swarm (docker swarm leave), and join again")
        return found

    async def keep(self, identity: Identity) -> None:
        """One that another manager has signed."""
        async with self._changing:
            await self._to_its_end(asyncio.to_thread(self.files().save, identity))

    # --- for a node that gets another role

    async def prepare(self, role: Role, identity: Identity, keys: tuple[bytes, bytes] | None = None) -> None:
        """Put it beside our own until `succeed`, with the `keys` that a manager is given: that of the swarm's secrets,
        and the one that unlocks it. A worker's is sealed with a new key: those of the swarm are not to be on its disk.

        Only for a role that the next daemon does not have yet: it takes what is prepared for the one that it has."""
        async with self._changing:
            await self._to_its_end(asyncio.to_thread(self._prepare, role, identity, keys))

    async def succeed(self, role: Role) -> None:
        """Put what was prepared for this role in place of our own certificate, and of the key that it is sealed with.
        Where a crash comes between, call it again; nothing is done where nothing is prepared."""
        async with self._changing:
            try:
                await self._to_its_end(asyncio.to_thread(self._succeed, role))
            except OSError as error:
                raise SystemFault(f"this node's certificate cannot be used: {error}") from error

    async def drop_prepared(self, role: Role) -> None:
        """This node was about to have this role, be it in another daemon, and did not come to that."""
        async with self._changing:
            await self._to_its_end(asyncio.to_thread(self._drop_prepared, role))

    async def go_on(self) -> None:
        """At a start, before anything is unsealed: what a daemon left that died while this node got another role. What
        a worker takes it takes when it begins to work."""
        if self._cluster.unreadable:
            return
        role = membership.role if (membership := self._cluster.membership) is not None else None
        for other in _ROLES:
            if other != role:
                await self.drop_prepared(other)
        if role == "manager":
            await self.succeed(role)

    def _prepare(self, role: Role, identity: Identity, keys: tuple[bytes, bytes] | None) -> None:
        self._drop_prepared(role)
        directory, sealer = self._prepared(role)
        # First: where there is none, nothing is prepared.
        if keys is not None:
            sealer.adopt(*keys)
        else:
            sealer.key()
        self._files(directory, sealer).save(identity)

    def _succeed(self, role: Role) -> None:
        directory, sealer = self._prepared(role)
        if sealer.is_there:
            supersede(self._directory, directory)
            # Last: while there is one, this is not at its end.
            self._sealer.succeed(sealer)

    def _drop_prepared(self, role: Role) -> None:
        directory, sealer = self._prepared(role)
        if sealer.is_there:
            forget(directory)
        sealer.settle(False)
        sealer.forget()

    def _prepared(self, role: Role) -> tuple[Path, Sealer]:
        own = self._directory
        return own.with_name(f"{own.stem}.{role}{own.suffix}"), self._sealer.successor(role)

    # --- our own, anew

    async def renew(self) -> Identity:
        async with self._changing:
            return await self._renew()

    async def wait(self, identity: Identity) -> float:
        """Seconds until it is to be renewed, at a moment of chance that is the same each time."""
        chance = zlib.crc32(identity.certificate) / (1 << 32)
        return await asyncio.to_thread(self._wait, identity, chance)

    async def forget(self) -> None:
        """The node is in no swarm."""
        # Nobody makes another one meanwhile, nor ends one afterwards that was begun before.
        async with self._changing:
            self._shown.clear()
            await self._to_its_end(asyncio.to_thread(forget, self._directory))
            for role in _ROLES:
                await self._to_its_end(asyncio.to_thread(self._drop_prepared, role))

    async def _to_its_end(self, work: Coroutine[object, object, T]) -> T:
        """A thread cannot be cancelled: whoever holds the lock waits for it."""
        return await self._tasks.to_its_end(work, "a certificate on the disk")

    async def _renew(self) -> Identity:
        return await self._to_its_end(self._renew_now())

    async def _renew_now(self) -> Identity:
        swarm, node = self._cluster.record, self._cluster.node
        made = await asyncio.to_thread(self._make, swarm, node.id)
        assert swarm.trust is not None
        await self._write_down(node.id, swarm.trust.signing.key_id)
        log.info("this node has a new certificate")
        return made

    def _make(self, swarm: Swarm, node: str) -> Identity:
        assert swarm.trust is not None
        key, request = ca.authority.new_request()
        made = Identity(swarm.trust.roots.encode(), self._sign(swarm, Holder(node, "manager", swarm.id), request), key)
        self.files().save(made)
        return made

    def _load(self) -> Identity | None:
        """None for one that does not fit the swarm as it is."""
        swarm = self._cluster.record
        try:
            kept = self.files().load()
        except SystemFault:  # sealed with a key that is gone
            return None
        if kept is None or swarm.trust is None or kept.roots != swarm.trust.roots.encode():
            return None
        holder = Holder(self._cluster.node_id, "manager", swarm.id)
        signed = ca.authority.signed_by(kept.certificate, [swarm.trust.signing.certificate.encode()])
        return kept if signed and ca.authority.look(kept.certificate).holder == holder else None

    def _wait(self, identity: Identity, chance: float) -> float:
        said = ca.authority.look(identity.certificate)
        return renewal.wait(said.made, said.ends, self._clock.seconds(), chance)

    def files(self) -> IdentityFiles:
        return self._files(self._directory, self._sealer)

    def _files(self, directory: Path, sealer: Sealer) -> IdentityFiles:
        return IdentityFiles(
            directory,
            lambda key: sealer.seal(key, _CONTEXT),
            lambda sealed: sealer.unseal(sealed, _CONTEXT),
            ca.authority.fits,
        )

    # --- of all nodes

    async def issue(self, node: str, role: Role, request: bytes) -> bytes:
        """A certificate for a key of a node that is in the records, or comes into them before `steady` is left."""
        swarm = self._cluster.swarm
        return await asyncio.to_thread(self._sign, swarm, Holder(node, role, swarm.id), request)

    def _sign(self, swarm: Swarm, holder: Holder, request: bytes) -> bytes:
        expiry = max(swarm.spec.ca_config.node_cert_expiry or _USUAL_EXPIRY, SHORTEST_EXPIRY) / SECOND
        return ca.authority.issue(request, holder, roots.signer(swarm, self._sealer), expiry, self._clock.seconds())

    @property
    def steady(self) -> asyncio.Lock:
        """While somebody has it, no replacement of a root comes to its end."""
        return self._changing

    def note(self, node: str, issuer: bytes) -> None:
        """A node has shown a certificate that this root has signed. What follows from that is done by `settle`."""
        trust, record = self._cluster.record.trust, self._store.nodes.get(node)
        if trust is not None and record is not None and record.issuer != issuer == trust.signing.key_id:
            self._shown[node] = issuer
            self._noted.set()

    async def noted(self, within: float) -> None:
        """Until `settle` may have something to do, or the time is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._noted.wait()
        self._noted.clear()

    async def _write_down(self, node: str, issuer: bytes) -> None:
        def change(record: Node) -> Node:
            return msgspec.structs.replace(record, issuer=issuer)

        if (record := self._store.nodes.get(node)) is not None and record.issuer != issuer:
            await self._store.amend(record, change)

    async def settle(self) -> bool:
        """Go on with the replacement of a root as far as it goes: our own certificate first. Whether that is new."""
        async with self._changing:
            swarm = self._store.swarm
            if swarm is None or swarm.trust is None or self._cluster.locked or self._cluster.unreadable:
                return False
            shown, self._shown = self._shown, {}
            for node, issuer in shown.items():
                await self._write_down(node, issuer)
            renewed = False
            if self._cluster.node.issuer != swarm.trust.signing.key_id:
                await self._renew()
                renewed = True
            if await self._finish():
                log.info("the root of the swarm's CA has been replaced")
                await self._renew()  # for what is to be believed from now on
                renewed = True
            self._changed.set()
            self._changed = asyncio.Event()
            return renewed

    async def _finish(self) -> bool:
        """End the replacement of a root if all nodes are ready for that."""
        swarm = self._cluster.record
        if swarm.trust is None or (coming := swarm.trust.next) is None or not self._have(coming):
            return False

        def change(record: Swarm) -> Swarm:
            if record.trust is None or record.trust.next != coming:
                return record
            return join_tokens.fitting(roots.finish(record), self._sealer)

        await self._store.amend(swarm, change)
        return (trust := self._cluster.record.trust) is not None and trust.root == coming

    def _have(self, root: SwarmRoot) -> bool:
        """Tell if all nodes that have certificates have shown one of this root."""
        return all(node.issuer in (b"", root.key_id) for node in self._store.nodes.values())

    @property
    def replacing(self) -> bool:
        """True while a root is being replaced."""
        swarm = self._store.swarm
        return swarm is not None and swarm.trust is not None and swarm.trust.next is not None

    async def changed(self, within: float) -> None:
        """Until something may be wanted of nodes, or the time is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._changed.wait()
