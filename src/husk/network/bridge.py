"""How does a container get a network on the bridge within microseconds, and how is it given back?

The life of a sandbox: built ahead of need into the warm pool (namespace, veth, address, route) → leased by `acquire`
→ the engine records the lease, then starts the container in it → `release`. Until the lease is recorded, a crash makes
it garbage that the next start sweeps (`sandbox.sweep`): so the record must be written before the first process starts.

A container on several networks has one sandbox, leased from one driver; the others `attach` an endpoint to it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from pathlib import Path
from typing import NamedTuple, Self, TypeGuard

from husk.config import AddressPool
from husk.errors import SystemFault, Unavailable
from husk.network import host, sandbox
from husk.network.firewall import BridgedNetwork, Firewall, validate_interface
from husk.network.ipam import AddressSpace
from husk.network.sandbox import Lease, Wiring
from husk.tasks import Tasks

log = logging.getLogger(__name__)

# How long the kernel may take to remove the interfaces of a dead namespace before we do it: about ten times the usual.
_GRACE_INTERVAL = 0.02
_GRACE_POLLS = 15


class BridgeSettings(NamedTuple):
    """What one driver calls its things, and how its network behaves."""

    interface: str
    # Marks what we made on the host; the same for all drivers of a daemon.
    owner: str
    netns_dir: Path
    # The gateway's address with its prefix; empty for the first free subnet of the pools.
    bip: str = ""
    pools: tuple[AddressPool, ...] = ()
    # What endpoints get that ask for no address, and what none of them gets.
    ip_range: str = ""
    reserved: tuple[str, ...] = ()
    internal: bool = False
    icc: bool = True
    masquerade: bool = True
    mtu: int = 0
    # How many sandboxes are kept ready, and for how many seconds after the last use (0: always).
    warm: int = 2
    warm_for: float = 0.0


class BridgeDriver:
    """One bridge of the host, its addresses, and the sandboxes connected to it."""

    def __init__(self, settings: BridgeSettings, firewall: Firewall, state: host.BridgeState) -> None:
        self._settings = settings
        self._firewall = firewall
        self._state = state
        within = IPv4Network(settings.ip_range) if settings.ip_range else None
        self._space = AddressSpace(state.gateway.network, within)
        for address in (state.gateway.ip, *map(IPv4Address, settings.reserved)):
            self._space.reserve(address)
        # Which interface an address belongs to: releasing a lease twice must not free its successor's address.
        self._owners: dict[IPv4Address, str] = {}
        self._pool: deque[Lease] = deque()
        self._tasks = Tasks()
        self._filling: asyncio.Task[None] | None = None
        self._retired: list[Lease] = []
        self._reaping: asyncio.Task[None] | None = None
        self._cooling: asyncio.TimerHandle | None = None
        self._closing = False

    @classmethod
    async def open(
        cls, settings: BridgeSettings, subnet: str | None, leases: Iterable[Lease], firewall: Firewall
    ) -> Self:
        """Create or repair what is missing on the host, remove what no lease owns, and begin to fill the warm pool.

        `subnet` is the one of last time, kept if it still overlaps nothing or if leases are in use.
        """
        in_use = list(leases)
        try:
            state = await asyncio.to_thread(_prepare, settings, subnet, in_use, firewall)
        except OSError as error:
            raise SystemFault(f"bridge {settings.interface} cannot be set up: {error}") from error
        driver = cls(settings, firewall, state)
        for lease in in_use:
            driver._adopt(lease)
        if not settings.warm_for:
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

    @property
    def addresses_in_use(self) -> int:
        return len(self._space)

    @property
    def addresses_available(self) -> int:
        return self._space.available

    async def acquire(self, wanted: str = "", mac: str = "") -> Lease:
        """A sandbox ready for use: from the pool, or made now when that is empty or an address of its own is wanted."""
        self._require_open()
        if wanted or mac:
            await self._make_room(wanted)
            return await self._build_now(wanted, mac)
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

    async def attach(self, sandbox_path: str, wanted: str = "", mac: str = "") -> Lease:
        """Give a container's sandbox, leased from another driver, an endpoint on this network too."""
        self._require_open()
        await self._make_room(wanted)
        wiring = self._wiring(wanted, mac)
        try:
            lease = await asyncio.to_thread(sandbox.attach, sandbox_path, wiring)
        except OSError as error:
            self._space.release(wiring.address.ip)
            raise SystemFault(f"network on bridge {self._settings.interface} cannot be attached: {error}") from error
        self._owners[wiring.address.ip] = lease.host_interface
        return lease

    async def detach(self, lease: Lease) -> None:
        """Take the endpoint from a sandbox that lives on. Safe to call twice."""
        try:
            await asyncio.to_thread(sandbox.disconnect, [lease])
        except OSError as error:
            raise SystemFault(f"interface {lease.host_interface} cannot be removed: {error}") from error
        self._free(lease)

    async def release(self, lease: Lease) -> None:
        """Remove a sandbox. Safe to call twice, also for leases of an earlier daemon.

        The address becomes free a little later, when the kernel has removed the interface that had it.
        """
        try:
            await asyncio.to_thread(sandbox.abandon, lease.sandbox_path)
        except OSError as error:
            raise SystemFault(f"network {lease.sandbox_path} cannot be removed: {error}") from error
        finally:
            # Also when the caller is cancelled: the thread goes on.
            self._retire(lease)

    async def close(self, remove: bool) -> None:
        """Drop the warm pool. `remove` says that no lease is in use: the bridge and its rules go too."""
        self._closing = True
        if self._cooling is not None:
            self._cooling.cancel()
        # Threads cannot be cancelled: what is being built gets ready, and is then dropped with the rest.
        await self._tasks.join()
        await self._drain()
        await self._tasks.join()
        if remove:
            await asyncio.to_thread(self._remove)

    def _require_open(self) -> None:
        if self._closing:
            raise Unavailable(f"bridge {self._settings.interface} is being closed")

    async def _make_room(self, wanted: str) -> None:
        """An address that only a warm sandbox has, the wanted one or the last, is free for whoever asks for it."""
        if not wanted and self._space.available:
            return
        if _runs(self._filling):
            await asyncio.wait([self._filling])
        in_the_way = [lease for lease in self._pool if wanted in ("", lease.ip_address)][:1]
        for lease in in_the_way:
            self._pool.remove(lease)
            await asyncio.to_thread(sandbox.abandon, lease.sandbox_path)
            await self.detach(lease)
        if not wanted:
            return
        for lease in [lease for lease in self._retired if lease.ip_address == wanted]:
            await self.detach(lease)
        if IPv4Address(wanted) in self._space and _runs(self._reaping):
            await asyncio.wait([self._reaping])

    async def _drain(self) -> None:
        while self._pool:
            await self.release(self._pool.popleft())

    async def _build_now(self, wanted: str = "", mac: str = "") -> Lease:
        building = self._tasks.spawn(self._build(wanted, mac), "build sandbox", awaited=True)
        try:
            return await asyncio.shield(building)
        except asyncio.CancelledError:
            building.add_done_callback(self._drop if wanted or mac else self._keep)
            raise

    def _keep(self, building: asyncio.Task[Lease]) -> None:
        if not building.cancelled() and building.exception() is None:
            self._pool.append(building.result())

    def _drop(self, building: asyncio.Task[Lease]) -> None:
        if not building.cancelled() and building.exception() is None:
            self._tasks.spawn(self.release(building.result()), "drop sandbox")

    async def _build(self, wanted: str = "", mac: str = "") -> Lease:
        wiring = self._wiring(wanted, mac)
        try:
            lease = await asyncio.to_thread(sandbox.build, self._settings.netns_dir, wiring)
        except OSError as error:
            self._space.release(wiring.address.ip)
            raise SystemFault(f"network on bridge {self._settings.interface} cannot be set up: {error}") from error
        self._owners[wiring.address.ip] = lease.host_interface
        return lease

    def _wiring(self, wanted: str, mac: str) -> Wiring:
        settings, gateway = self._settings, self._state.gateway
        address = self._space.allocate(IPv4Address(wanted) if wanted else None)
        return Wiring(
            bridge=settings.interface,
            address=IPv4Interface((address, gateway.network.prefixlen)),
            gateway=None if settings.internal else gateway.ip,
            mtu=self._state.mtu,
            mac=mac.replace("-", ":").lower(),
            isolated=not settings.icc,
        )

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
        if self._owners.get(address) == lease.host_interface:
            del self._owners[address]
            self._space.release(address)

    def _adopt(self, lease: Lease) -> None:
        address = IPv4Address(lease.ip_address)
        if address not in self._state.gateway.network:
            log.warning("%s of a running container is outside the bridge's subnet %s", address, self.subnet)
        self._space.reserve(address)
        self._owners[address] = lease.host_interface

    def _refill(self) -> None:
        if self._settings.warm_for:
            if self._cooling is not None:
                self._cooling.cancel()
            self._cooling = asyncio.get_running_loop().call_later(self._settings.warm_for, self._cool)
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

    def _cool(self) -> None:
        if not self._closing:
            self._tasks.spawn(self._drain(), "drop warm pool")

    def _remove(self) -> None:
        host.remove(self._settings.interface, self._settings.owner)
        self._firewall.remove_network(self._settings.interface)


def _runs(task: asyncio.Task[None] | None) -> TypeGuard[asyncio.Task[None]]:
    return task is not None and not task.done()


def _prepare(settings: BridgeSettings, subnet: str | None, leases: list[Lease], firewall: Firewall) -> host.BridgeState:
    settings.netns_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    plan = host.BridgePlan(
        interface=validate_interface(settings.interface),
        owner=settings.owner,
        bip=settings.bip,
        pools=settings.pools,
        remembered=subnet,
        in_use=bool(leases),
        mtu=settings.mtu,
    )
    state = host.ensure(plan)
    sandbox.sweep_ports(settings.interface, leases)
    sandbox.reattach(settings.interface, leases, isolated=not settings.icc)
    firewall.add_network(
        BridgedNetwork(
            settings.interface,
            state.gateway.network,
            internal=settings.internal,
            icc=settings.icc,
            masquerade=settings.masquerade,
        )
    )
    return state
