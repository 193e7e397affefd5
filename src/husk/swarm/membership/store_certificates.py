"""The certificates of the swarm's own etcd that were given out, and the list of those that are good for nothing now.

Who was a manager may have a copy of its certificate, which is good for a year. So each is written down before it is
given out, in the record `store-certificate` with its serial number for a key; a renewal keeps that, and the record
tells its new end. Each manager looks once in a while which of them are those of managers, and writes the others into a
list of its own beside its member, which reads it with each new connection. Whoever has one already is cut off by a
restart of the member.

A manager that was demoted while it was away needs its certificate once more, to hear of it: it is revoked when the node
works as a worker, or is removed from the swarm.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from pathlib import Path

import msgspec

from husk.aio.tasks import Tasks
from husk.errors import HuskError
from husk.swarm import ca
from husk.swarm.ca import roots
from husk.swarm.model.clocks import CLOCK, Clock
from husk.swarm.model.node import Node
from husk.swarm.model.services import SECOND
from husk.swarm.state import member_files
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.transactions import ClusterRecord, Delete, Put, Stale
from husk.text import documents

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
