"""The certificate of this host's member of etcd, renewed while the member runs.

Each manager signs its own: the CA's key is in the record of the swarm, sealed. So that a member whose certificate ended
while the host was off is not shut out of its own records, the sealed root is kept beside the certificate. The key
stays, and the certificate is one file that is replaced in one step: etcd reads both with each new connection, and never
finds two that do not fit. Managers renew at random moments, long before the end; no member is restarted for it.
"""

import asyncio
import logging
import time
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from husk.aio.tasks import Tasks
from husk.errors import HuskError
from husk.storage.secrets.sealing import Sealer
from husk.swarm import ca
from husk.swarm.ca import renewal, roots
from husk.swarm.model.swarm import SwarmRoot
from husk.swarm.state import member_files
from husk.text.documents import decode

log = logging.getLogger(__name__)

ROOT = "root.json"
# In seconds: between two looks at most, for the host's clock may be set at any time; until the swarm's record is looked
# for again; between two tries, at most.
PAUSE, SOON, LONGEST = 300.0, 60.0, 24 * 3600.0


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
