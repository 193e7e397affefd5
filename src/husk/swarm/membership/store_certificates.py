"""The certificates of the swarm's own etcd that were given out, and the list of those that are good for nothing now.

Who was a manager may have a copy of its certificate, which is good for a year. So each is written down before it is
given out, in the record `store-certificate` with its serial number for a key; a renewal keeps that, and the record
tells its new end. Each manager looks once in a while which of them are those of managers, and writes the others into a
list of its own beside its member, which reads it with each new connection. Whoever has one already is cut off by a
restart of the member.

A manager that was demoted while it was away needs its certificate once more, to hear of it: it is revoked when the node
works as a worker, or is removed from the swarm.

The certificate of this host's member of etcd, renewed while the member runs.

Each manager signs its own: the CA's key is in the record of the swarm, sealed. So that a member whose certificate ended
while the host was off is not shut out of its own records, the sealed root is kept beside the certificate. The key
stays, and the certificate is one file that is replaced in one step: etcd reads both with each new connection, and never
finds two that do not fit. Managers renew at random moments, long before the end; no member is restarted for it.
"""

import asyncio
import logging
import time
import zlib
from collections.abc import Awaitable, Callable, Collection, Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from husk.aio.tasks import Tasks
from husk.errors import HuskError
from husk.storage.secrets.sealing import Sealer
from husk.swarm import ca
from husk.swarm.ca import renewal, roots
from husk.swarm.model.clocks import CLOCK, Clock
from husk.swarm.model.node import Node
from husk.swarm.model.services import SECOND
from husk.swarm.model.swarm import SwarmRoot
from husk.swarm.state import member_files
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.transactions import ClusterRecord, Delete, Put, Stale
from husk.text import documents
from husk.text.documents import decode

ROOT = "root.json"
# In seconds: between two looks at most, for the host's clock may be set at any time; until the swarm's record is looked
# for again; between two tries, at most.
PAUSE, SOON, LONGEST = 300.0, 60.0, 24 * 3600.0
log = logging.getLogger(__name__)

KIND = "store-certificate"
# Between two looks, in seconds.
LOOK = 15.0
# How long a host has to end what it does as a manager after it is none any more.
GRACE = 60 * SECOND
# How long after its end one is still known, in seconds: what was revoked must not be good again, be it that its last
# renewal was not written down, or that somebody's clock is ahead.
KEPT = roots.MEMBER_LIFE


class IssuedCertificate(msgspec.Struct, frozen=True):
    """To whom a certificate was given, for a member at which address, and when it ends, in seconds since 1970."""

    node: str
    host: str
    ends: float


class StoreCertificates:
    def __init__(
        self,
        store: SwarmRecords,
        certificate: Path,
        key: Path,
        revoked: Path,
        *,
        own: Callable[[], Node | None],
        members: Callable[[], Awaitable[Collection[str]]],
        cut_off: Callable[[], Awaitable[None]],
        clock: Clock = CLOCK,
    ) -> None:
        """`own` is the record of this host's node, None while it is not known. `members` tells at which addresses etcd
        has members. `cut_off` ends connections of others than managers."""
        self._store = store
        self._certificate, self._key, self._revoked = certificate, key, revoked
        self._own = own
        self._members = members
        self._cut_off = cut_off
        self._clock = clock
        # Since when those are good for nothing that are not revoked yet; and those in the list.
        self._since: dict[int, int] = {}
        self._listed: frozenset[int] | None = None
        self._tasks = Tasks()
        self._running = False

    def start(self) -> None:
        """Nothing is done where it runs."""
        if not self._running:
            self._running = True
            self._tasks.spawn(self._run(), "certificates of the swarm's etcd")

    async def close(self) -> None:
        self._running = False
        await self._tasks.cancel_all()

    async def note(self, serial: int, given: IssuedCertificate) -> None:
        """One is about to be given out: the one before it, of the same node, ends with that."""
        await self._store.commit(Put(KIND, f"{serial:x}", msgspec.json.encode(given)))

    def prepare(self) -> None:
        """See that there is a list, without which etcd would take nobody. Blocks."""
        if not member_files.is_there(self._revoked):
            self._write(frozenset())

    async def _run(self) -> None:
        while True:
            try:
                await self.look()
            except (HuskError, OSError, ValueError, msgspec.MsgspecError) as error:
                log.info("the certificates of the swarm's etcd could not be looked at: %s", error)
            except Exception:  # a fault of ours: there is nobody else who would look again
                log.exception("the certificates of the swarm's etcd could not be looked at")
            await asyncio.sleep(LOOK)

    async def look(self) -> None:
        """Bring the list up to who is a manager now."""
        if (own := self._own()) is None or not own.is_manager:
            return
        given = {int(r.key, 16): (r, documents.decode(r.body, IssuedCertificate)) for r in await self._listing()}
        given = await self._without_ended(given)
        latest = _latest(given)
        serial, ends = await asyncio.to_thread(self._of_ours)
        if latest.get(own.id) != serial or given[serial][1].ends < ends:
            await self.note(serial, IssuedCertificate(own.id, own.status.addr, ends))
            latest[own.id] = serial
        useless = [
            number for number, (_, one) in given.items() if number != serial and self._is_useless(number, one, latest)
        ]
        if useless:
            hosts = await self._members()
            useless = [n for n in useless if latest.get(given[n][1].node) != n or given[n][1].host not in hosts]
        now, before = self._clock.awake(), await asyncio.to_thread(self._known)
        self._since = {number: self._since.get(number, now) for number in useless}
        revoked = frozenset(n for n in useless if n in before or now - self._since[n] >= GRACE)
        if revoked != before:
            await asyncio.to_thread(self._write, revoked)
        if revoked - before:
            log.info("certificates of the swarm's etcd are revoked: %s", ", ".join(sorted(f"{n:x}" for n in revoked)))
            await self._cut_off()

    def _is_useless(self, serial: int, given: IssuedCertificate, latest: dict[str, int]) -> bool:
        """Tell if a certificate's node is gone, is no manager any more and knows that, or has another one since."""
        node = self._store.nodes.get(given.node)
        if latest.get(given.node) != serial:
            return True
        return node is None or (not node.is_manager and node.status.state == "ready")

    async def _listing(self) -> Iterable[ClusterRecord]:
        return (await self._store.store.listing(KIND)).records

    async def _without_ended(
        self, given: dict[int, tuple[ClusterRecord, IssuedCertificate]]
    ) -> dict[int, tuple[ClusterRecord, IssuedCertificate]]:
        """Those that have ended by themselves long ago are forgotten."""
        now = self._clock.seconds()
        for number in [number for number, (_, one) in given.items() if one.ends + KEPT < now]:
            record, _ = given.pop(number)
            try:
                await self._store.commit(Delete(KIND, record.key, record.version), happened=True)
            except Stale:
                log.debug("certificate %s was given out anew", record.key)
        return given

    # --- files

    def _of_ours(self) -> tuple[int, float]:
        certificate = member_files.read(self._certificate)
        return ca.authority.serial_of(certificate), ca.authority.look(certificate).ends

    def _known(self) -> frozenset[int]:
        if self._listed is None:
            self._listed = ca.authority.revoked_in(member_files.read(self._revoked))
        return self._listed

    def _write(self, serials: frozenset[int]) -> None:
        content = ca.authority.revocation_list(serials, member_files.read(self._key), self._clock.seconds())
        member_files.replace(self._revoked, content)
        self._listed = serials


def _latest(given: dict[int, tuple[ClusterRecord, IssuedCertificate]]) -> dict[str, int]:
    """Of each node the one that it was given last."""
    found: dict[str, tuple[int, int]] = {}
    for number, (record, one) in given.items():
        if record.version > found.get(one.node, (0, 0))[0]:
            found[one.node] = record.version, number
    return {node: number for node, (_, number) in found.items()}


class CertificateOwner(NamedTuple):
    """The owner of the certificate: the node, and the address that others reach its member at."""

    node: str
    host: str


class MemberCertificate:
    def __init__(
        self,
        certificate: Path,
        key: Path,
        *,
        owner: Callable[[], CertificateOwner],
        root: Callable[[], SwarmRoot | None],
        sealer: Sealer,
        renewed: Callable[[], Awaitable[None]],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`root` is the CA of the swarm's etcd, None while the swarm's record cannot be read. `renewed` is called when
        there is another certificate."""
        self._certificate, self._key = certificate, key
        self._kept = certificate.parent / ROOT
        self._owner = owner
        self._root = root
        self._sealer = sealer
        self._renewed = renewed
        self._clock = clock
        self._failures = 0
        # There is another certificate, and `renewed` has not come to its end.
        self._untold = False
        self._tasks = Tasks()
        self._running = False

    def start(self) -> None:
        """Nothing is done where it runs."""
        if not self._running:
            self._running = True
            self._tasks.spawn(self._run(), "certificate of the member of etcd")

    async def close(self) -> None:
        self._running = False
        await self._tasks.cancel_all()

    async def _run(self) -> None:
        while True:
            wait = await self.look()
            await asyncio.sleep(min(wait, PAUSE))

    async def look(self) -> float:
        """Renew it where it is time; in how many seconds to look again."""
        try:
            wait = await self._tasks.to_its_end(asyncio.to_thread(self._look), "a certificate on the disk")
        except (HuskError, OSError, ValueError) as error:
            self._failures += 1
            log.warning("the certificate of this manager's member of etcd could not be looked at: %s", error)
            return renewal.wait_again(self._failures, LONGEST)
        if wait == 0:
            log.info("this manager's member of etcd has a new certificate")
            self._untold = True
        if self._untold:
            try:
                await self._renewed()
            except (HuskError, OSError, ValueError) as error:
                self._failures += 1
                log.warning("the new certificate of this manager's member of etcd is not used yet: %s", error)
                return renewal.wait_again(self._failures, LONGEST)
            self._untold = False
        self._failures = 0
        return wait or LONGEST

    def _look(self) -> float:
        """Seconds until it is to be renewed: 0 when it was."""
        root, kept = self._root(), member_files.read(self._kept)
        if root is not None and (content := msgspec.json.encode(root)) != kept:
            member_files.replace(self._kept, content)
            kept = content
        certificate = member_files.read(self._certificate)
        has = ca.authority.look(certificate)
        # The moment is a matter of chance, and the same each time that this certificate is looked at.
        wait = renewal.wait(has.made, has.ends, self._clock(), zlib.crc32(certificate) / (1 << 32))
        if wait > 0:
            return wait if kept else min(wait, SOON)
        owner, root = self._owner(), decode(kept, SwarmRoot)
        request = ca.authority.request_for(member_files.read(self._key))
        # By which it may be revoked, should this host be no manager any more (`store_certificates`).
        serial = ca.authority.serial_of(certificate)
        signed = roots.member_certificate(root, self._sealer, request, owner.node, owner.host, self._clock(), serial)
        member_files.replace(self._certificate, signed)
        return 0.0
