"""The driver of one network: it gives containers their sandboxes within microseconds, and takes them back.

The life of a sandbox: built ahead of need into the warm pool (namespace, veth, address, route) → leased by `acquire`
→ the engine records the lease, then starts the container in it → `release`. Until the lease is recorded, a crash makes
it garbage that the next start sweeps (`sandbox.sweep`): so the record must be written before the first process starts.

A container on several networks has one sandbox, leased from one driver; the others `attach` an endpoint to it.
"""

import asyncio
import errno
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface, ip_interface
from pathlib import Path
from typing import Self, TypeGuard

from husk.aio.tasks import Tasks
from husk.errors import HuskError, SystemFault, Unavailable
from husk.network import announcement, host, overlay, provision, retiring, sandbox
from husk.network.allocator import Allocator, subnet_of
from husk.network.announcement import Acquaintances
from husk.network.endpoint import DEFAULTS, EndpointOptions
from husk.network.firewall import Firewall
from husk.network.provision import MOST_PORTS, BridgeFull
from husk.network.sandbox import Lease, Wiring
from husk.network.settings import BridgeSettings, Opening
from husk.network.warm_pool import WarmPool

log = logging.getLogger(__name__)

# So many endpoints on a network are a crowd. Each frame for all costs the kernel some 10 microseconds for each of them.
_CROWD = 100


class BridgeHost:
    """The host under the driver: its bridge, and the sandboxes on it. All but `retire` and `announce` block."""

    def index_of(self, interface: str) -> int:
        return provision.index_of(interface)

    def build(self, directory: Path, wiring: Wiring) -> Lease:
        """Make a sandbox that is wired so."""
        return sandbox.build(directory, wiring)

    def attach(self, sandbox_path: str, wiring: Wiring) -> Lease:
        """Wire a sandbox that is there."""
        return sandbox.attach(sandbox_path, wiring)

    def cut_off(self, interface: str, known: Sequence[Lease], connected: Sequence[Lease]) -> None:
        """Forget endpoints, and remove the interfaces of those that are still connected."""
        sandbox.cut_off(interface, known, connected)

    def fit(self, leases: Sequence[Lease], mtu: int) -> None:
        """Let endpoints send no larger packets."""
        overlay.fit(leases, mtu)

    async def retire(self, leases: Sequence[Lease]) -> list[Lease]:
        """Let go of sandboxes; return those that linger."""
        return await retiring.abandon(leases)

    async def announce(self, lease: Lease, times: int, interval: float) -> None:
        """Tell the network of an endpoint's MAC."""
        await announcement.repeat(lease, times, interval)


HOST = BridgeHost()


class BridgeDriver:
    """One bridge of the host, or the parent of other interfaces; its addresses, and the sandboxes connected to it."""

    def __init__(
        self,
        settings: BridgeSettings,
        firewall: Firewall,
        state: host.BridgeState,
        mended: Callable[[], None],
        under: BridgeHost = HOST,
        crowd: int = _CROWD,
    ) -> None:
        self._host = under
        self._most_told = crowd
        self._settings = settings
        self._firewall = firewall
        self._state = state
        self._mended = mended
        self._mending = asyncio.Lock()
        # The gateways that endpoints may use, None where there is none.
        self._gateway = None if 4 in settings.bare else state.gateway
        self._gateway6 = None if 6 in settings.bare else state.gateway6
        # Where endpoints send what is not on their network.
        self._route = IPv4Address(settings.route) if settings.route else self._gateway and self._gateway.ip
        self._route6 = IPv6Address(settings.route6) if settings.route6 else self._gateway6 and self._gateway6.ip
        self._allocator = Allocator(
            subnet_of(state.gateway, settings.ip_range, self._gateway),
            subnet_of(state.gateway6, settings.ip_range6, self._gateway6),
            (*settings.reserved, *state.taken),
        )
        self._tasks = Tasks()
        self._pool = WarmPool(
            self._tasks,
            lambda: self._build(self._wiring(DEFAULTS)),
            self.release,
            size=settings.warm,
            keep_for=settings.warm_for,
        )
        self._announcing = Tasks()
        self._acquaintances: Acquaintances | None = None
        self._retired: list[Lease] = []
        self._reaping: asyncio.Task[None] | None = None
        self._closing = False

    @classmethod
    async def open(
        cls,
        settings: BridgeSettings,
        subnet: str | None,
        leases: Iterable[Lease],
        firewall: Firewall,
        mended: Callable[[], None] = lambda: None,
    ) -> Self:
        """Create or repair what is missing on the host, remove what no lease owns, and begin to fill the warm pool.

        `subnet` is the one of last time, kept if it still overlaps nothing or if leases are in use. `mended` is called,
        in a thread, when a bridge that was deleted is there again: others may have had something on it.
        """
        [driver] = await cls.open_all([Opening(settings, subnet, list(leases))], firewall, mended)
        driver.warm_up()
        return driver

    @classmethod
    async def open_all(
        cls, openings: Sequence[Opening], firewall: Firewall, mended: Callable[[], None] = lambda: None
    ) -> list[Self]:
        """As `open`, for many at once, and without warm pools: whoever opens them says when to begin (`warm_up`)."""
        states = await asyncio.to_thread(provision.prepare, openings, firewall)
        drivers = []
        for opening, state in zip(openings, states, strict=True):
            driver = cls(opening.settings, firewall, state, mended)
            for lease in opening.leases:
                driver._allocator.adopt(lease)
            drivers.append(driver)
        return drivers

    def warm_up(self) -> None:
        """Begin to fill the pool of a network that keeps one at all times."""
        self._pool.warm_up()

    @property
    def interface(self) -> str:
        return self._settings.interface

    @property
    def gateway(self) -> str:
        """Empty where the network has none: without IPv4, and where nobody but containers has addresses."""
        return str(self._gateway.ip) if self._gateway else ""

    @property
    def subnet(self) -> str:
        """Empty without IPv4."""
        return str(self._state.gateway.network) if self._state.gateway else ""

    @property
    def gateway6(self) -> str:
        """As `gateway`, for IPv6."""
        return str(self._gateway6.ip) if self._gateway6 else ""

    @property
    def subnet6(self) -> str:
        return str(self._state.gateway6.network) if self._state.gateway6 else ""

    @property
    def reaches_host(self) -> bool:
        """True if ports of the host can lead to its endpoints."""
        return self._settings.parent_link is None

    @property
    def warm(self) -> int:
        """The number of sandboxes that are ready now."""
        return len(self._pool)

    @property
    def usage(self) -> dict[str, tuple[int, int]]:
        """(addresses in use, addresses left to give out) by subnet. What warm sandboxes have is anybody's."""
        return self._allocator.usage([*self._pool, *self._retired])

    async def acquire(self, options: EndpointOptions = DEFAULTS) -> Lease:
        """A sandbox ready for use: from the pool, or made now when that is empty or something of its own is wanted."""
        self._require_open()
        await self._mend()
        lease = await self._acquire(options)
        self._announce(lease)
        return lease

    async def _acquire(self, options: EndpointOptions) -> Lease:
        if options != DEFAULTS:
            await self._make_room(options)
            return await self._build_now(options)
        while True:
            try:
                lease = self._pool.take() or await self._build_now()
            except Unavailable:
                # The last address may belong to a sandbox in the making for the pool, or to one that is going away.
                self._pool.hurry()
                under_way = [task for task in (self._pool.filling, self._reaping) if _runs(task)]
                if not under_way:
                    raise
                await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
            else:
                self._pool.refill()
                return lease

    async def attach(self, sandbox_path: str, options: EndpointOptions = DEFAULTS) -> Lease:
        """Give a container's sandbox, leased from another driver, an endpoint on this network too."""
        self._require_open()
        await self._mend()
        await self._make_room(options)
        wiring = self._wiring(options)
        making = self._make(wiring, lambda: self._host.attach(sandbox_path, wiring))
        lease = await self._or_else(making, lambda made: self._tasks.spawn(self.detach(made), "take an endpoint back"))
        self._announce(lease)
        return lease

    async def detach(self, lease: Lease) -> None:
        """Take the endpoint from a sandbox that lives on. Safe to call twice."""
        try:
            if self._settings.parent_link is None:
                await self._cut_off([lease])
            else:
                await asyncio.to_thread(sandbox.unplug, lease)
        except OSError as error:
            raise SystemFault(f"interface {lease.host_interface} cannot be removed: {error}") from error
        self._free(lease)

    def release(self, lease: Lease) -> None:
        """Remove a sandbox soon, with all others that go, be it of an earlier daemon. Safe to call twice.
        The address becomes free when the kernel has removed the interface that had it."""
        self._retired.append(lease)
        if not _runs(self._reaping):
            self._reaping = self._tasks.spawn(self._reap(), "free addresses")

    async def fit(self, mtu: int) -> None:
        """From now on no endpoint sends larger packets, also those that are there already."""
        self._state = self._state._replace(mtu=mtu)
        await asyncio.to_thread(provision.fit, self._settings.interface, mtu)
        # What is being made is made to fit when it is there.
        await self._shrink(list(self._allocator.leases.values()), mtu)

    def take_address(self, version: int) -> str:
        """An address that no container gets until it is given back; empty when the network has none of that kind."""
        return self._allocator.take_one(version)

    def uses(self, address: str) -> bool:
        """Return True if an address is taken on this network."""
        return self._allocator.is_taken(address)

    def free_address(self, address: str) -> None:
        self._allocator.give_back(address)

    async def close(self, remove: bool) -> None:
        """Drop the warm pool. `remove` says that no lease is in use: the bridge and its rules go too."""
        self._closing = True
        await self._announcing.cancel_all()
        self._pool.close()
        # Threads cannot be cancelled: what is being built gets ready, and is then dropped with the rest.
        await self._tasks.join()
        self._pool.drain()
        await self._tasks.join()
        if remove:
            await asyncio.to_thread(provision.remove, self._settings, self._firewall)

    async def keep_cold(self) -> None:
        """From now on nothing is made ahead of need: addresses are others' to give."""
        await self._pool.keep_none()
        if _runs(self._reaping):
            await asyncio.wait([self._reaping])

    def _announce(self, lease: Lease) -> None:
        if self._acquaintances is None:
            self._acquaintances = announcement.Acquaintances()
            for known in self._allocator.leases.values():
                self._acquaintances.is_news(known)
        is_news = self._acquaintances.is_news(lease)
        crowded = len(self._allocator.leases) > self._most_told and not self._settings.always_announced
        # On a bridge of the administrator's there may be others who gave the address to somebody before.
        if crowded and not is_news and self._state.mac:
            return
        saying = self._host.announce(lease, self._settings.announcements, self._settings.announcement_interval)
        self._announcing.spawn(saying, "announce an endpoint")

    async def _mend(self) -> None:
        """A bridge that somebody has deleted is made again, with all that was on it."""
        if self._settings.parent_link is not None or self._bridge_is_there():
            return
        async with self._mending:
            if self._bridge_is_there():
                return
            log.warning("bridge %s was deleted: making it again", self._settings.interface)
            # What is being made for the old one is to be on the new one too.
            await self._pool.filled()
            leases = list(self._allocator.leases.values())
            self._state = await asyncio.to_thread(provision.mend, self._settings, self._state, leases, self._firewall)
            await asyncio.to_thread(self._mended)

    def _bridge_is_there(self) -> bool:
        return self._host.index_of(self._settings.interface) == self._state.bridge_index

    def _require_open(self) -> None:
        if self._closing:
            raise Unavailable(f"bridge {self._settings.interface} is being closed")

    async def _make_room(self, options: EndpointOptions) -> None:
        """An address that only a warm sandbox has, the wanted one or the last, is free for whoever asks for it."""
        chosen = bool(options.address or options.address6)
        if not chosen and not self._allocator.exhausted:
            return
        await self._pool.filled()
        in_the_way = [lease for lease in self._pool if not chosen or options.fits(lease)]
        for lease in in_the_way if chosen else in_the_way[:1]:
            if lease not in self._pool:
                continue  # somebody has taken it while this waited for the one before
            self._pool.remove(lease)
            await asyncio.to_thread(sandbox.abandon, lease.sandbox_path)
            await self.detach(lease)
        if not chosen:
            return
        for lease in [lease for lease in self._retired if options.fits(lease)]:
            await self.detach(lease)
        if _runs(self._reaping) and (
            options.address in self._allocator.owners or options.address6 in self._allocator.owners
        ):
            await asyncio.wait([self._reaping])

    async def _build_now(self, options: EndpointOptions = DEFAULTS) -> Lease:
        # The addresses are taken now: whoever made room for the options did so for nobody else.
        building = self._build(self._wiring(options))
        return await self._or_else(building, self._pool.put if options == DEFAULTS else self.release)

    async def _or_else(self, making: Coroutine[object, object, Lease], unwanted: Callable[[Lease], object]) -> Lease:
        """Threads cannot be cancelled: `unwanted` is called with what is made for somebody who has gone meanwhile."""
        task = self._tasks.spawn(making, "make an endpoint", awaited=True)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:

            def over(made: asyncio.Task[Lease]) -> None:
                if not made.cancelled() and made.exception() is None:
                    unwanted(made.result())

            task.add_done_callback(over)
            raise

    async def _build(self, wiring: Wiring) -> Lease:
        return await self._make(wiring, lambda: self._host.build(self._settings.netns_dir, wiring))

    async def _make(self, wiring: Wiring, how: Callable[[], Lease]) -> Lease:
        try:
            lease = await asyncio.to_thread(how)
        except OSError as error:
            self._release(wiring)
            if error.errno == errno.EXFULL:
                raise BridgeFull(f"bridge {self._settings.interface} has {MOST_PORTS} ports already") from error
            raise SystemFault(f"network on {self._settings.interface} cannot be set up: {error}") from error
        except HuskError:
            self._release(wiring)
            raise
        self._allocator.note(lease)
        mtu = wiring.mtu
        while mtu != self._state.mtu:  # it was told to fit while this was made
            mtu = self._state.mtu
            try:
                await self._shrink([lease], mtu)
            except OSError as error:
                log.warning("%s sends packets of more than %d bytes: %s", lease.host_interface, mtu, error)
        return lease

    async def _shrink(self, leases: list[Lease], mtu: int) -> None:
        await asyncio.to_thread(self._host.fit, leases, mtu)

    def _wiring(self, options: EndpointOptions) -> Wiring:
        settings = self._settings
        address, address6 = self._allocator.take(options)
        closed = settings.internal
        return Wiring(
            bridge=settings.interface,
            address=address if isinstance(address, IPv4Interface) else None,
            gateway=None if closed else self._route,
            mtu=self._state.mtu,
            mac=options.mac.replace("-", ":").lower(),
            isolated=not settings.icc,
            address6=address6 if isinstance(address6, IPv6Interface) else None,
            gateway6=self._route6 if options.ipv6 and not closed else None,
            direct=settings.parent_link is not None and settings.parent_link.routes and not closed,
            parent_link=settings.parent_link,
            name=options.name,
            prefix=settings.prefix,
            sysctls=options.sysctls,
            link_local=tuple(ip_interface(f"{text}/{64 if ':' in text else 16}") for text in options.link_local),
            port_prefix=self._firewall.port_prefix,
            host_versions=provision.host_versions(settings, self._state),
            host_addresses=self._host_addresses,
            host_mac=self._state.mac,
        )

    @property
    def _host_addresses(self) -> frozenset[IPv4Address | IPv6Address]:
        """The gateways that are the host itself."""
        gateways = [own.ip for own in (self._gateway, self._gateway6) if own is not None]
        return frozenset(address for address in gateways if address.version not in self._settings.silent)

    def _release(self, wiring: Wiring) -> None:
        for address in (wiring.address, wiring.address6):
            if address is not None:
                self.free_address(str(address.ip))

    async def _reap(self) -> None:
        """Free the addresses of retired leases as their interfaces disappear, with force if they linger."""

        while self._retired:
            batch, self._retired = self._retired, []
            try:
                await self._cut_off(batch, await self._host.retire(batch))
            except (HuskError, OSError) as error:
                log.error("endpoints on %s are removed with the next one that goes: %s", self.interface, error)
                self._retired += batch
                return
            for lease in batch:
                self._free(lease)

    async def _cut_off(self, leases: Sequence[Lease], connected: Sequence[Lease] | None = None) -> None:
        """The host forgets the endpoints; those that are still connected lose their interfaces."""
        # Not when the address is somebody else's by now.
        known = [lease for lease in leases if lease.host_interface in self._allocator.leases]
        lingering = leases if connected is None else connected
        if known or lingering:
            await asyncio.to_thread(self._host.cut_off, self._settings.interface, known, lingering)

    def _free(self, lease: Lease) -> None:
        self._allocator.free(lease)


def _runs(task: asyncio.Task[None] | None) -> TypeGuard[asyncio.Task[None]]:
    return task is not None and not task.done()
