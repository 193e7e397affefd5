"""How does a container get a network on the bridge within microseconds, and how is it given back?

The life of a sandbox: built ahead of need into the warm pool (namespace, veth, address, route) → leased by `acquire`
→ the engine records the lease, then starts the container in it → `release`. Until the lease is recorded, a crash makes
it garbage that the next `BridgeDriver.open` sweeps: so the record must be written before the first process starts.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from typing import NamedTuple, Self, TypeGuard

from husk.config import AddressPool
from husk.errors import SystemFault, Unavailable
from husk.network import host, sandbox
from husk.network.firewall import BridgedNetwork, Firewall, validate_interface
from husk.network.ipam import AddressSpace
from husk.network.sandbox import Lease
from husk.tasks import Tasks

log = logging.getLogger(__name__)

# How long the kernel may take to remove the interfaces of a dead namespace before we do it: about ten times the usual.
_GRACE_INTERVAL = 0.02
_GRACE_POLLS = 15


class BridgeSettings(NamedTuple):
    """What one driver calls its things. All of them, the directory included, belong to it alone."""

    interface: str
    table: str
    netns_dir: Path
    bip: str = ""
    pools: tuple[AddressPool, ...] = ()
    warm: int = 2

    @property
    def owner(self) -> str:
        return f"husk bridge of {self.table}"


class BridgeDriver:
    """One bridge of the host, its firewall table, its addresses, and the sandboxes connected to it."""

    def __init__(self, settings: BridgeSettings, firewall: Firewall, state: host.BridgeState) -> None:
        self._settings = settings
        self._firewall = firewall
        self._state = state
        self._space = AddressSpace(state.gateway.network)
        self._space.reserve(state.gateway.ip)
        # Which sandbox an address belongs to: releasing a lease twice must not free its successor's address.
        self._owners: dict[IPv4Address, str] = {}
        self._pool: deque[Lease] = deque()
        self._tasks = Tasks()
        self._filling: asyncio.Task[None] | None = None
        self._retired: list[Lease] = []
        self._reaping: asyncio.Task[None] | None = None
        self._closing = False

    @classmethod
    async def open(cls, settings: BridgeSettings, subnet: str | None, leases: Iterable[Lease]) -> Self:
        """Create or repair what is missing on the host, remove what no lease owns, and begin to fill the warm pool.

        `subnet` is the one of last time, kept if it still overlaps nothing or if leases are in use.
        """
        in_use = list(leases)
        try:
            firewall, state = await asyncio.to_thread(_prepare, settings, subnet, in_use)
        except OSError as error:
            raise SystemFault(f"bridge {settings.interface} cannot be set up: {error}") from error
        driver = cls(settings, firewall, state)
        for lease in in_use:
            driver._adopt(lease)
        driver._refill()
        return driver

    @property
    def gateway(self) -> str:
        return str(self._state.gateway.ip)

    @property
    def subnet(self) -> str:
        return str(self._state.gateway.network)

    @property
    def warm(self) -> int:
        """How many sandboxes are ready now."""
        return len(self._pool)

    async def acquire(self) -> Lease:
        """A sandbox ready for use: from the pool, or made now when that is empty."""
        if self._closing:
            raise Unavailable(f"bridge {self._settings.interface} is being closed")
        while True:
            try:
                lease = self._pool.popleft() if self._pool else await self._build_now()
            except Unavailable:
                # The last address may belong to a sandbox in the making for the pool, or to one that is going away.
                under_way = [task for task in (self._filling, self._reaping) if _runs(task)]
                if not under_way:
                    raise
                await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
            else:
                self._refill()
                return lease

    async def release(self, lease: Lease) -> None:
        """Remove a sandbox. Safe to call twice, also for leases of an earlier daemon.

        The address becomes free a little later, when the kernel has removed the interface that had it.
        """
        try:
            await asyncio.to_thread(sandbox.abandon, lease)
        except OSError as error:
            raise SystemFault(f"network {lease.sandbox_path} cannot be removed: {error}") from error
        finally:
            # Also when the caller is cancelled: the thread goes on.
            self._retire(lease)

    async def close(self, remove: bool) -> None:
        """Drop the warm pool. `remove` says that no lease is in use: bridge and firewall table go too."""
        self._closing = True
        # Threads cannot be cancelled: what is being built gets ready, and is then dropped with the rest.
        await self._tasks.join()
        while self._pool:
            await self.release(self._pool.popleft())
        await self._tasks.join()
        if remove:
            await asyncio.to_thread(self._remove)

    async def _build_now(self) -> Lease:
        building = self._tasks.spawn(self._build(), "build sandbox", awaited=True)
        try:
            return await asyncio.shield(building)
        except asyncio.CancelledError:
            building.add_done_callback(self._keep)
            raise

    def _keep(self, building: asyncio.Task[Lease]) -> None:
        if not building.cancelled() and building.exception() is None:
            self._pool.append(building.result())

    async def _build(self) -> Lease:
        settings, state = self._settings, self._state
        address = IPv4Interface((self._space.allocate(), state.gateway.network.prefixlen))
        try:
            lease = await asyncio.to_thread(
                sandbox.build, settings.netns_dir, settings.interface, address, state.gateway, state.mtu
            )
        except OSError as error:
            self._space.release(address.ip)
            raise SystemFault(f"network on bridge {settings.interface} cannot be set up: {error}") from error
        self._owners[address.ip] = lease.sandbox_path
        return lease

    def _retire(self, lease: Lease) -> None:
        self._retired.append(lease)
        if not _runs(self._reaping):
            self._reaping = self._tasks.spawn(self._reap(), "free addresses")

    async def _reap(self) -> None:
        """Free the addresses of retired leases as their interfaces disappear, with force if they linger."""
        while self._retired:
            batch, self._retired = self._retired, []
            lingering = batch
            for _ in range(_GRACE_POLLS):
                lingering = [lease for lease in lingering if sandbox.connected(lease)]
                if not lingering:
                    break
                await asyncio.sleep(_GRACE_INTERVAL)
            if lingering:
                await asyncio.to_thread(sandbox.disconnect, lingering)
            for lease in batch:
                self._free(lease)

    def _free(self, lease: Lease) -> None:
        address = IPv4Address(lease.ip_address)
        if self._owners.get(address) == lease.sandbox_path:
            del self._owners[address]
            self._space.release(address)

    def _adopt(self, lease: Lease) -> None:
        address = IPv4Address(lease.ip_address)
        if address not in self._state.gateway.network:
            log.warning("%s of a running container is outside the bridge's subnet %s", address, self.subnet)
        self._space.reserve(address)
        self._owners[address] = lease.sandbox_path

    def _refill(self) -> None:
        if not _runs(self._filling) and not self._closing and len(self._pool) < self._settings.warm:
            self._filling = self._tasks.spawn(self._fill(), "fill warm pool")

    async def _fill(self) -> None:
        try:
            while not self._closing and len(self._pool) < self._settings.warm:
                self._pool.append(await self._build())
        except Unavailable as error:
            log.debug("the pool of warm networks stays smaller: %s", error)
        except SystemFault as error:
            # The next acquire tries again and tells its caller.
            log.warning("the pool of warm networks cannot be filled: %s", error)

    def _remove(self) -> None:
        host.remove(self._settings.interface, self._settings.owner)
        self._firewall.remove()
        with suppress(OSError):
            self._settings.netns_dir.rmdir()


def _runs(task: asyncio.Task[None] | None) -> TypeGuard[asyncio.Task[None]]:
    return task is not None and not task.done()


def _prepare(settings: BridgeSettings, subnet: str | None, leases: list[Lease]) -> tuple[Firewall, host.BridgeState]:
    firewall = Firewall(settings.table)
    settings.netns_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    plan = host.BridgePlan(
        interface=validate_interface(settings.interface),
        owner=settings.owner,
        bip=settings.bip,
        pools=settings.pools,
        remembered=subnet,
        in_use=bool(leases),
    )
    state = host.ensure(plan)
    sandbox.sweep(settings.netns_dir, settings.interface, leases)
    sandbox.reattach(settings.interface, leases)
    firewall.apply([BridgedNetwork(settings.interface, state.gateway.network)])
    return firewall, state
