"""The cluster port of this node, while it is a manager of a swarm that is not locked.

It listens from `swarm init` on, and what serves it is loaded when somebody knocks
(`husk.swarm.transport.listener`). Where another program has the port, the swarm goes on without it, says so in
`docker info`, and tries again now and then: two daemons may share a host, each with a swarm of its own.
"""

import asyncio
import logging
from collections.abc import Callable

from husk.aio.once import load
from husk.aio.tasks import Tasks
from husk.errors import SystemFault
from husk.swarm import port
from husk.swarm.ca import renewal
from husk.swarm.ca.identity import Identity
from husk.swarm.membership.certificates import NodeCertificates
from husk.swarm.membership.cluster import Cluster
from husk.swarm.transport.listener import PAUSE, LazyListener, Listener
from husk.text.endpoints import MANAGER_PORT, HostPort, read_endpoint

log = logging.getLogger(__name__)

USUAL = HostPort("0.0.0.0", MANAGER_PORT)
# In seconds: until a port that was taken is tried again; how long a timer runs at most, for the host's clock may be
# set, by years on a board that has none of its own.
_AGAIN, _LONGEST = 30.0, 300.0
# Between two looks at the swarm's roots when no node has shown anything new: another manager may have changed them.
_LOOK = 5.0
# The longest time, in seconds, between two tries to renew our own certificate.
_RENEWING = 60.0


class ClusterListener:
    def __init__(
        self,
        cluster: Cluster,
        certificates: NodeCertificates,
        served: Callable[[], "port.server.ClusterPort"],
        again: float = _AGAIN,
        look: float = _LOOK,
        pause: float = PAUSE,
    ) -> None:
        """`served` makes the port with all that it serves. In seconds: `again` until a port that was taken is tried
        again, `look` between two looks at the roots, `pause` after one that could not be opened."""
        self._again, self._look, self._pause = again, look, pause
        self._cluster = cluster
        self._certificates = certificates
        self._served = served
        self._door: LazyListener | None = None
        self._port: port.server.ClusterPort | None = None
        # What the port shows.
        self._used: Identity | None = None
        # What the log has been told already.
        self._complained = ""
        self._tasks = Tasks()
        self._retrying: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None

    @property
    def endpoint(self) -> HostPort:
        """The address that the port is to have."""
        told = self._cluster.listen_address
        return read_endpoint(told, MANAGER_PORT) if told else USUAL

    async def probe(self, endpoint: HostPort) -> None:
        """Raise where a client names an address that cannot be had. The usual one may be another daemon's."""
        if endpoint == USUAL:
            return
        try:
            door = LazyListener(*endpoint, _nothing)
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
            self._door = LazyListener(*self.endpoint, self._serve, self._pause)
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

    async def _follow(self) -> None:
        """Go on with the replacement of a root whenever a node has come further. Handlers only tell of that: they end
        with the calls of their nodes."""
        while True:
            await self._certificates.noted(self._look)
            await self._settle()

    async def _settle(self) -> None:
        try:
            if await self._certificates.settle() or self._behind:
                await self._renewed()
            self._complained = ""
        except Exception as error:  # a full disk, too: the next look tries again
            if (told := str(error)) != self._complained:
                log.warning("this manager has no certificate: %s", told)
            self._complained = told
        # A port that is in use has its looks (`_follow`).
        if self._port is None and (self._complained or self._certificates.replacing) and self._looking is None:
            self._looking = self._tasks.spawn(self._look_again(), "certificates of the swarm, once more")

    async def _look_again(self) -> None:
        await asyncio.sleep(self._look)
        self._looking = None
        await self._settle()

    @property
    def _behind(self) -> bool:
        """True if the port believes other roots than the swarm."""
        trust = self._cluster.record.trust if self._used is not None and self._cluster.active else None
        return self._used is not None and trust is not None and self._used.roots != trust.roots.encode()

    async def _renewed(self) -> Identity:
        """This node may have another certificate: who comes from now on sees it."""
        identity = await self._certificates.identity()
        if self._port is not None and identity != self._used:
            self._port.use(identity)
            self._used = identity
        return identity

    async def close(self) -> None:
        """Safe to call twice."""
        if self._door is not None and self._port is None:
            # Nobody opens the port any more, and begins what follows from that.
            await self._door.close()
        await self._tasks.cancel_all()
        if self._port is not None:
            await self._port.close()
        if self._door is not None:
            await self._door.close()
        self._port = self._door = self._used = self._looking = None
        self._cluster.port_trouble = ""

    async def _retry(self) -> None:
        while self._door is None:
            await asyncio.sleep(self._again)
            self.open()

    async def _serve(self, listener: Listener) -> None:
        try:
            await self._serve_with(listener, await self._certificates.identity())
            self._cluster.port_trouble = ""
        except Exception as error:
            self._cluster.port_trouble = f"the cluster port cannot be opened: {error}"
            raise

    async def _serve_with(self, listener: Listener, identity: Identity) -> None:
        await load("husk.swarm.port.parts")
        opened = self._served()
        opened.open(listener, identity)
        self._port, self._used = opened, identity
        self._tasks.spawn(self._renew(), "renewal of this node's certificate")
        self._tasks.spawn(self._follow(), "certificates of other nodes")

    async def _renew(self) -> None:
        """From when the port is in use; else it is done when somebody knocks."""
        failures = 0
        while True:
            try:
                left = await self._certificates.wait(await self._renewed())
                await asyncio.sleep(min(left, _LONGEST))
                if left <= _LONGEST:
                    await self._certificates.renew()
                failures = 0
            except Exception as error:  # a full disk, too: there is nobody else who would try again
                failures += 1
                log.warning("this manager's certificate cannot be renewed now: %s", error)
                await asyncio.sleep(renewal.wait_again(failures, 4 * _RENEWING))


async def _nothing(listener: Listener) -> None:
    """A probe serves nobody."""


def _told(endpoint: HostPort, error: OSError) -> str:
    reason = (error.strerror or str(error)).lower()
    return f"failed to listen on remote API address: listen tcp {endpoint}: bind: {reason}"
