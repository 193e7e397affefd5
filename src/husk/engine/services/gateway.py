"""The cluster port of this node, while it is a manager of a swarm that is not locked.

It listens from `swarm init` on, and what serves it is loaded when somebody knocks (`husk.cluster.door`). Where another
program has the port, the swarm goes on without it, says so in `docker info`, and tries again now and then: two daemons
may share a host, each with a swarm of its own.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from husk.cluster.door import Door, Listener
from husk.cluster.endpoints import Endpoint, read_endpoint
from husk.engine.services.certificates import Certificates
from husk.engine.services.cluster import Cluster
from husk.engine.services.node import MANAGER_PORT
from husk.errors import HuskError, SystemFault
from husk.tasks import Tasks

if TYPE_CHECKING:
    from husk.cluster.port.server import ClusterPort
    from husk.engine.services.office import SwarmOffice

log = logging.getLogger(__name__)

USUAL = Endpoint("0.0.0.0", MANAGER_PORT)
# In seconds: until a port that was taken is tried again; how long a timer runs at most.
_AGAIN, _LONGEST = 30.0, 24 * 3600.0


class Gateway:
    def __init__(
        self,
        cluster: Cluster,
        certificates: Certificates,
        office: Callable[[], "SwarmOffice"],
        registering: Callable[["ClusterPort"], None] | None = None,
    ) -> None:
        """`registering` hangs more handlers on a port that opens."""
        self._cluster = cluster
        self._certificates = certificates
        self._office = office
        self._registering = registering
        self._door: Door | None = None
        self._port: ClusterPort | None = None
        self._tasks = Tasks()
        self._retrying: asyncio.Task[None] | None = None

    @property
    def endpoint(self) -> Endpoint:
        """Where the port is to be."""
        told = self._cluster.listen_address
        return read_endpoint(told, MANAGER_PORT) if told else USUAL

    async def probe(self, endpoint: Endpoint) -> None:
        """Raise where a client names an address that cannot be had. The usual one may be another daemon's."""
        if endpoint == USUAL:
            return
        try:
            door = Door(*endpoint, _nothing)
        except OSError as error:
            raise SystemFault(_told(endpoint, error)) from None
        await door.close()

    def open(self) -> None:
        """Go on where the swarm has changed; nothing happens where there is none, or it is locked."""
        if not self._cluster.active or self._cluster.locked or self._cluster.unreadable:
            return
        self._tasks.spawn(self._settle(), "certificates of the swarm")
        if self._door is not None:
            return
        try:
            self._door = Door(*self.endpoint, self._serve)
            self._cluster.port_trouble = ""
        except OSError as error:
            told = _told(self.endpoint, error)
            if told != self._cluster.port_trouble:
                log.warning("no node can join: %s", told)
            self._cluster.port_trouble = told
            if self._retrying is None or self._retrying.done():
                self._retrying = self._tasks.spawn(self._retry(), "the cluster port, once more")

    def dropped(self, node: str) -> None:
        """A node has been removed; the replacement of a root may have waited for it."""
        if self._port is not None:
            self._port.drop(node)
        self._tasks.spawn(self._settle(), "certificates of the swarm")

    async def _settle(self) -> None:
        try:
            if await self._certificates.settle():
                await self._renewed()
        except HuskError as error:
            log.warning("this manager has no certificate: %s", error.message)

    async def _renewed(self) -> None:
        """This node has another certificate: who comes from now on sees it."""
        if self._port is not None:
            self._port.use(await self._certificates.identity())

    async def close(self) -> None:
        """Safe to call twice."""
        await self._tasks.cancel_all()
        if self._port is not None:
            await self._port.close()
        if self._door is not None:
            await self._door.close()
        self._port = self._door = None
        self._cluster.port_trouble = ""

    async def _retry(self) -> None:
        while self._door is None:
            await asyncio.sleep(_AGAIN)
            self.open()

    async def _serve(self, listener: Listener) -> None:
        from husk.cluster.port.certificates import CertificateHandlers
        from husk.cluster.port.server import ClusterPort

        identity = await self._certificates.identity()
        office = self._office()
        port = ClusterPort(office)
        CertificateHandlers(office).register(port)
        if self._registering is not None:
            self._registering(port)
        port.open(listener, identity)
        self._port = port
        self._tasks.spawn(self._renew(), "renewal of this node's certificate")

    async def _renew(self) -> None:
        """From when the port is in use; else it is done when somebody knocks."""
        while True:
            left = await self._certificates.wait(await self._certificates.identity())
            await asyncio.sleep(min(left, _LONGEST))
            if left <= _LONGEST:
                with contextlib.suppress(HuskError):
                    await self._certificates.renew()
                    await self._renewed()


async def _nothing(listener: Listener) -> None:
    """A probe serves nobody."""


def _told(endpoint: Endpoint, error: OSError) -> str:
    reason = (error.strerror or str(error)).lower()
    return f"failed to listen on remote API address: listen tcp {endpoint}: bind: {reason}"
