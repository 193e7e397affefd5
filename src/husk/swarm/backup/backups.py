"""Backup and restore of the whole swarm: all of its records as of one revision, with the keys that open them.

A backup is made by any manager while everything runs. It is brought back by a daemon that is in no swarm, which is the
only manager then (`restored`). The host's place is written first, with a mark; then the keys, then the records, that of
the swarm last. So whatever a crash leaves, the next start has all of it, or removes what there is (`go_on`).
"""

import asyncio
import logging
from collections.abc import Iterable

import msgspec

from husk.engine.model.clock import now_ns, rfc3339
from husk.errors import Conflict, HuskError, InvalidParameter, SystemFault, Unavailable
from husk.network import own_addresses
from husk.storage.state.schema import SCHEMA
from husk.swarm.backup import file
from husk.swarm.backup.restored import of_today, own_node, restored
from husk.swarm.manager.parts import ManagerParts
from husk.swarm.membership.autolock import KEY_PREFIX, read_key
from husk.swarm.membership.moving import KINDS, SWARM, drop, everything, in_batches
from husk.swarm.membership.parts import MembershipParts
from husk.swarm.model.node import ManagerStatus
from husk.swarm.model.refusals import HAS_ONE
from husk.swarm.model.settings import RestoreAddresses
from husk.swarm.model.swarm import KEY, Membership, Swarm, read_swarm
from husk.swarm.role import NodeRole
from husk.swarm.state.cluster_store import ClusterStore
from husk.swarm.state.parts import StateParts
from husk.swarm.state.sqlite import SqliteStore
from husk.swarm.state.transactions import NEW, Check, ClusterRecord, Delete, News, Put, Stale
from husk.swarm.surroundings import SwarmSurroundings
from husk.text.documents import MalformedDocument, decode
from husk.text.endpoints import MANAGER_PORT, HostPort, read_endpoint

log = logging.getLogger(__name__)

SHORTEST = 8
"""Of a passphrase."""
OVERLAY = "overlay"
_LATEST = 1 << 62
_ANY = ("0.0.0.0", "::")


class Backups:
    def __init__(
        self,
        around: SwarmSurroundings,
        state: StateParts,
        membership: MembershipParts,
        manager: ManagerParts,
        node_role: NodeRole,
    ) -> None:
        self._store = state.records
        self._sealer = state.sealer
        self._cluster = membership.cluster
        self._certificates = membership.certificates
        self._networks = around.networks
        self._listener = manager.listener
        self._node_role = node_role

    # --- backup

    def check_size(self, length: int) -> None:
        """InvalidParameter for more bytes than a backup has."""
        if length > file.LARGEST:
            raise InvalidParameter(f"a backup of a swarm has {file.LARGEST} bytes at most")

    async def make(self, passphrase: str) -> bytes:
        """The file. A swarm with autolock needs no passphrase: what unlocks it opens the backup, too."""
        swarm = self._cluster.swarm
        locks = {_lock(swarm)}
        if swarm.autolock and passphrase:
            raise InvalidParameter("this swarm has autolock: its unlock key opens the backup, and no passphrase does")
        if not swarm.autolock and len(passphrase) < SHORTEST:
            raise InvalidParameter(
                f"a backup holds all keys of the swarm: it needs a passphrase of {SHORTEST} characters at least"
            )
        taken = await self._store.store.snapshot(KINDS)
        key, unlock_key = await asyncio.to_thread(self._cluster.shared_keys)
        locks |= {_lock(read_swarm(record.body)) for record in taken.records if record.name == (SWARM, KEY)}
        if len(locks | {_lock(self._cluster.swarm)}) > 1 or bool(unlock_key) != swarm.autolock:
            raise Conflict("autolock of the swarm, or its unlock key, was changed while the backup was made")
        kept = [file.SavedRecord(record.kind, record.key, msgspec.Raw(record.body)) for record in taken.records]
        membership = self._cluster.membership
        content = file.BackupContent(
            swarm=swarm.id,
            node=self._cluster.node_id,
            schema=SCHEMA,
            listen_address=membership.listen_address if membership is not None else "",
            key=key,
            unlock_key=unlock_key,
            records=[*kept, *self._own_networks(kept)],
        )
        secret = unlock_key if swarm.autolock else passphrase.encode()
        return await asyncio.to_thread(file.write, content, secret, rfc3339(now_ns()))

    def _own_networks(self, kept: list[file.SavedRecord]) -> list[file.SavedRecord]:
        """The swarm's networks that are this host's alone, as they are where hosts share them."""
        known = {record.key for record in kept if record.kind == OVERLAY}
        numbers = {_vni(record) for record in kept if record.kind == OVERLAY}
        found = []
        for live in self._networks.presence.alone:
            if live.record.id not in known:
                network = self._networks.presence.numbered(live, numbers)
                numbers.add(network.vni)
                known.add(network.id)
                found.append(file.SavedRecord(OVERLAY, network.id, msgspec.Raw(msgspec.json.encode(network))))
        for network in self._networks.listing():
            if network.scope == "swarm" and network.id not in known:
                raise SystemFault(f"a backup cannot hold network {network.name}: it could not be made on this host")
        return found

    # --- restore

    async def restore(self, data: bytes, secret: str, where: RestoreAddresses) -> str:
        """Go on with the swarm of a backup, as its only manager; the node's id. Where it fails nothing is changed."""
        content = await asyncio.to_thread(file.read, data, _secret(data, secret))
        async with self._node_role.changing:
            self._cluster.check_alone()
            if await self._store.has_swarm():
                raise Unavailable(HAS_ONE)
            membership, records = await self._planned(content, where)
            if membership.listen_address:
                await self._listener.probe(read_endpoint(membership.listen_address, MANAGER_PORT))
            try:
                await self._bring(membership, content, records)
                await self._cluster.enrol(msgspec.structs.replace(membership, restoring=""))
            except Stale:
                if await self._undo(content.swarm, records):
                    raise Unavailable(HAS_ONE) from None
                raise
            except BaseException:
                await self._undo(content.swarm, records)
                raise
            try:
                await self._cluster.describe_self()
            except HuskError as error:
                # The next start does.
                log.warning("the restored swarm is not told what this host is: %s", error.message)
        log.info("this node goes on with swarm %s, from a backup", content.swarm)
        return membership.node_id

    async def _planned(self, content: file.BackupContent, where: RestoreAddresses) -> tuple[Membership, list[Put]]:
        content = await asyncio.to_thread(of_today, content)
        former = own_node(content)
        advertise = where.advertise or HostPort(former.status.addr, 0)
        if where.advertise is None and not await asyncio.to_thread(own_addresses.is_own, advertise.host):
            raise InvalidParameter(
                f"the manager that made the backup had the address {advertise.host}, which this host has not: use "
                "--advertise-addr; workers come back by themselves to addresses of former managers only"
            )
        listen = str(where.listen or "") or content.listen_address
        if where.listen is None and listen and not await asyncio.to_thread(_can_listen, listen):
            listen = ""
        data_path = where.data_path or former.data_path
        if data_path and not await asyncio.to_thread(own_addresses.is_own, data_path):
            if where.data_path:
                raise InvalidParameter(f"this host has not the data path address {data_path}")
            data_path = ""
        port = advertise.port or (where.listen.port if where.listen is not None else _port_of(former.manager))
        records = await asyncio.to_thread(restored, content, advertise.host, port, data_path, now_ns())
        membership = Membership(
            node_id=content.node,
            advertise_address=advertise.host,
            listen_address=listen,
            restoring=content.swarm,
        )
        return membership, records

    async def _bring(self, membership: Membership, content: file.BackupContent, records: list[Put]) -> None:
        # What a former try has left.
        await drop(self._store.store, swarm=False)
        await self._cluster.enrol(membership)
        await asyncio.to_thread(self._sealer.adopt, content.key, content.unlock_key)
        await write(self._store.store, records)
        there = await everything(self._store.store)
        self._store.take_in(there)
        self._node_role.manager_role.share_networks(there)

    async def _undo(self, swarm: str, records: Iterable[Put] = ()) -> bool:
        """Leave nothing of what was restored. Whether others have made a swarm in the store meanwhile."""
        try:
            theirs = await self._remove(swarm, records)
            there = await everything(self._store.store) if theirs else News(_LATEST, True, ())
        except HuskError as error:
            # The mark in the host's place stays, so that the next start tries again.
            log.error("what was restored cannot be removed before the next start: %s", error.message)
            return False
        self._store.take_in(there)
        self._node_role.manager_role.share_networks(None)
        await self._certificates.forget()
        await self._cluster.part()
        return theirs

    async def _remove(self, swarm: str, records: Iterable[Put]) -> bool:
        """Remove a swarm from the store; only these records of it where the store holds another one, which is told."""
        store = self._store.store
        there = await store.get(SWARM, KEY)
        if there is None or _id_of(there) == swarm:
            try:
                if there is not None:
                    await store.commit(Delete(SWARM, KEY, there.version), happened=True)
                await drop(store, swarm=False)
                return False
            except Stale:
                log.info("others have made a swarm in the cluster store meanwhile")
        for some in in_batches(put for put in records if put.kind != SWARM):
            await store.commit(*(Delete(put.kind, put.key) for put in some), happened=True)
        return True

    async def go_on(self) -> None:
        """At a start: what was restored is there as a whole, or what there is of it goes."""
        membership = self._cluster.membership
        if membership is None or not membership.restoring:
            return
        swarm = self._store.swarm
        if swarm is not None and swarm.id == membership.restoring:
            await self._cluster.enrol(msgspec.structs.replace(membership, restoring=""))
            return
        log.warning("a restore of a swarm was cut off: nothing is left of it, and this node is in no swarm")
        if swarm is None:
            await self._undo(membership.restoring)
        else:
            # Others have made one in the store meanwhile.
            await self._cluster.part()


async def write(store: ClusterStore, records: list[Put]) -> None:
    """In one transaction where the store can do that; else the record of the swarm is the last. Stale where others have
    made a swarm in the store."""
    if isinstance(store, SqliteStore):
        await store.commit(*records)
        return
    *others, swarm = records
    for some in in_batches(others):
        await store.commit(*some, Check(SWARM, KEY, NEW))
    await store.commit(swarm)


def _secret(data: bytes, secret: str) -> bytes:
    head, _ = file.read_head(data)
    if head.opened_by == "passphrase":
        return secret.encode()
    if not secret.strip().startswith(KEY_PREFIX):
        raise InvalidParameter("the swarm of this backup has autolock: its unlock key opens it (SWMKEY-1-…)")
    return read_key(secret)


def _vni(record: file.SavedRecord) -> int:
    return decode(record.body, _Numbered).vni


class _Numbered(msgspec.Struct):
    vni: int = 0


def _can_listen(text: str) -> bool:
    host = read_endpoint(text, MANAGER_PORT).host
    return host in _ANY or own_addresses.is_own(host)


def _lock(swarm: Swarm) -> tuple[bool, bytes]:
    """Return the fields of a swarm's record that tell how the swarm is opened after a start."""
    return swarm.autolock, swarm.unlock_key


def _id_of(record: ClusterRecord) -> str:
    try:
        return read_swarm(record.body).id
    except (MalformedDocument, HuskError):
        return ""


def _port_of(manager: ManagerStatus | None) -> int:
    return read_endpoint(manager.addr, MANAGER_PORT).port if manager is not None and manager.addr else MANAGER_PORT
