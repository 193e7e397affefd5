"""Overlay networks over several hosts: somebody who knows the swarm says who is where, and the host is made so.

A network without a `OverlayWay` is a bridge of this host alone, as on one host. `apply` is told all of it each time and
changes what is different; between two calls, and while no daemon runs, the kernel goes on as it was told last. What
somebody deletes meanwhile is noticed, and made again (`look`).

Encrypted networks run over this host's device of WireGuard, which is there while one of them is. Where it cannot be
had they are not led to other hosts: nothing of theirs goes another way. What others send is taken from the hosts that
a network is on, and from nobody else (`senders`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from husk.aio.tasks import Tasks
from husk.engine.model.network import MTU, Network
from husk.engine.networks.live import LiveNetwork, Roster
from husk.errors import HuskError
from husk.network import host, wireguard
from husk.network.deletions import Deletions
from husk.network.overlay import WIREGUARD_OVERHEAD, Overlay, OverlaySettings, largest_mtu, underlay_mtu
from husk.network.peers import OverlayPeer
from husk.network.senders import SenderRules, Senders
from husk.network.settings import TunnelSettings

if TYPE_CHECKING:
    from husk.network.wireguard.parties import Mesh

log = logging.getLogger(__name__)

ENCRYPTED = "encrypted"
# Before what was deleted, or has ended, is made again, in seconds: at first, at most, and after which time at first.
SOON, LATE, SETTLED = 0.2, 30.0, 60.0


class OverlayWay(Struct, frozen=True):
    """The way of one network to other hosts: its number, this host's own addresses on it, and all of its endpoints.
    Those of an encrypted network are at hosts' addresses inside of the tunnel."""

    vni: int
    own: str
    peers: tuple[OverlayPeer, ...]
    own6: str = ""


class Underlay(Struct, frozen=True):
    """The network between the hosts: this one's address, the UDP port, and who is in the tunnel."""

    local: str
    port: int
    mesh: "Mesh"


def interface_of(network: Network) -> str:
    """The VXLAN interface beside the network's bridge."""
    return f"vx-{network.id[:12]}"


def encrypted(network: Network) -> bool:
    return network.options.get(ENCRYPTED, "false") not in ("false", "0")


class TunnelRules:
    """`Guarded`: the rules of the tunnel, while there is one."""

    def __init__(self, overlays: "Overlays", table: str) -> None:
        self._overlays = overlays
        self.table = table

    def intact(self) -> bool:
        tunnel = self._overlays.tunnel
        return tunnel is None or tunnel.fence.intact()

    def apply(self) -> None:
        if (tunnel := self._overlays.tunnel) is not None:
            tunnel.fence.apply()


class SendersGuard:
    """`Guarded`: the rules for what other hosts send, while there are any."""

    def __init__(self, overlays: "Overlays", table: str) -> None:
        self._overlays = overlays
        self.table = table

    def intact(self) -> bool:
        return self._overlays.senders is None or self._overlays.senders.intact()

    def apply(self) -> None:
        if self._overlays.senders is not None:
            self._overlays.senders.apply()


def _tunnel(settings: TunnelSettings, ended: Callable[[], None]) -> "wireguard.tunnel.WireguardTunnel":
    return wireguard.tunnel.WireguardTunnel(settings, ended)


class OverlayDrivers(NamedTuple):
    """The drivers of what the networks have on the host: `open` and `remove` of the interfaces beside bridges, the MTU
    between hosts, the rules for what other hosts send, the tunnel, and the watch on deletions."""

    open: Callable[[OverlaySettings], Awaitable[Overlay]] = Overlay.open
    remove: Callable[[str, str], None] = host.remove
    underlay_mtu: Callable[[str], int] = underlay_mtu
    rules: Callable[[str], SenderRules] = SenderRules
    tunnel: Callable[[TunnelSettings, Callable[[], None]], "wireguard.tunnel.WireguardTunnel"] = _tunnel
    deletions: Callable[[Callable[[Collection[str] | None], None]], Deletions] = Deletions


DRIVERS = OverlayDrivers()


class Overlays:
    def __init__(
        self,
        roster: Roster,
        owner: str,
        tunnel: TunnelSettings | None = None,
        table: str = "husk",
        drivers: OverlayDrivers = DRIVERS,
        soon: float = SOON,
    ) -> None:
        """Without `tunnel` there are no encrypted networks over several hosts. `table` is that of the rules for what
        other hosts send. After `soon` seconds at first what was deleted is made again."""
        self._drivers = drivers
        self._soon = soon
        self._roster = roster
        self._table = table
        # While a network that is not encrypted leads to other hosts.
        self.senders: SenderRules | None = None
        self._owner = owner
        self._tunnel_settings = tunnel
        self._tunnel: wireguard.tunnel.WireguardTunnel | None = None
        # What the tunnel was told last.
        self._mesh: tuple[Mesh, int] | None = None
        # Hosts whose address is of the other version of IP than ours.
        self._unreached: set[str] = set()
        self._open: dict[str, Overlay] = {}
        self._told: dict[str, OverlayWay] = {}
        # Encrypted networks that are about to be here.
        self._coming: set[str] = set()
        self._changing = asyncio.Lock()
        self._deletions: Deletions | None = None
        self._tasks = Tasks()
        # What is done in threads, which cannot be cut off.
        self._changes = Tasks()
        self._looking = False
        self._looked_at, self._pause = 0.0, soon

    @property
    def tunnel(self) -> "wireguard.tunnel.WireguardTunnel | None":
        """The tunnel that encrypted networks run over; None while there is none of them here."""
        return self._tunnel

    @property
    def public(self) -> tuple[str, int] | None:
        """This host's public key and port, which other hosts need for encrypted networks; None while it has none."""
        return self._tunnel.public if self._tunnel is not None else None

    def own(self, network: Network) -> tuple[str, ...]:
        """This host's own addresses on a network; none where it leads to no other host."""
        way = self._told.get(network.id)
        return tuple(filter(None, (way.own, way.own6))) if way is not None else ()

    async def secure(self, network: Network) -> None:
        """An encrypted network is about to be here: what it needs stays until `came`. Unavailable where that cannot be,
        with what has to be done."""
        async with self._changing:
            self._coming.add(network.id)
            if (tunnel := self._guard()) is not None:
                await tunnel.open()

    def came(self, network: Network) -> None:
        """It is here now, or could not be."""
        self._coming.discard(network.id)

    async def apply(self, underlay: Underlay, ways: Mapping[str, OverlayWay]) -> None:
        """Make exactly these networks, by id, reach other hosts; those that are not here are left out. What one of them
        fails with is raised when all others are as they should be."""

        async with self._changing:
            lives = {live.record.id: live for live in self._roster.by_name.values() if live.record.driver == "overlay"}
            wanted = {id: way for id, way in ways.items() if id in lives and lives[id].bridged}
            failed: list[HuskError | OSError] = []
            for id in [id for id in self._open if id not in wanted]:
                self._told.pop(id, None)
                try:
                    await self._open[id].close(remove=True)
                    del self._open[id]
                except (HuskError, OSError) as error:
                    failed.append(error)
            secret = self._secret()
            most = await asyncio.to_thread(self._drivers.underlay_mtu, underlay.local) if wanted or secret else 0
            if secret:
                try:
                    await self._tell_tunnel(underlay, most)
                except (HuskError, OSError) as error:
                    failed.append(error)
                    wanted = {id: way for id, way in wanted.items() if not encrypted(lives[id].record)}
            # Before there is anything that takes what is sent.
            try:
                await self._take_from(
                    {id: way for id, way in wanted.items() if not encrypted(lives[id].record)}, underlay
                )
            except (HuskError, OSError) as error:
                failed.append(error)
                wanted = {id: way for id, way in wanted.items() if encrypted(lives[id].record)}
            for id, way in wanted.items():
                try:
                    await self._lead(lives[id], underlay, way, most)
                except (HuskError, OSError) as error:
                    failed.append(error)
            if self._open:
                self._listen()
            if failed:
                raise failed[0]
            if not secret:
                await self._end_tunnel()

    async def _lead(self, live: LiveNetwork, underlay: Underlay, way: OverlayWay, underlay_mtu: int) -> None:
        """Let one network reach other hosts."""

        id = live.record.id
        settings = self._settings(live, underlay, way, underlay_mtu)
        # Somebody may have deleted the interface.
        if id not in self._open or self._open[id].settings != settings or not self._open[id].is_there:
            await live.driver.fit(settings.mtu)
            self._open[id] = await self._drivers.open(settings)
            self._told.pop(id, None)
        # To look at what the kernel has takes longer the more of it there is.
        if self._told.get(id) != way:
            self._told.pop(id, None)  # what fails, or is cut off, may be done by half
            await self._open[id].tell(way.peers)
            self._told[id] = way

    def _settings(self, live: LiveNetwork, underlay: Underlay, way: OverlayWay, underlay_mtu: int) -> OverlaySettings:
        network, secret = live.record, encrypted(live.record)
        most = largest_mtu(underlay_mtu, ip_address(underlay.local).version, secret)
        return OverlaySettings(
            bridge=live.driver.interface,
            interface=interface_of(network),
            owner=self._owner,
            vni=way.vni,
            port=underlay.port,
            local=underlay.mesh.own if secret else underlay.local,
            link=self._tunnel.interface if secret and self._tunnel is not None else "",
            own=way.own,
            own6=way.own6,
            mtu=min(most, int(network.options.get(MTU) or most)),
        )

    # --- what other hosts send

    async def _take_from(self, ways: Mapping[str, OverlayWay], underlay: Underlay) -> None:
        """Take what comes for these networks from the hosts that they are on."""
        if not ways:
            if not self._plain():
                await self._take_nothing()
            return

        hosts = tuple(sorted((way.vni, frozenset(peer.host for peer in way.peers)) for way in ways.values()))
        self._tell_unreached({host for _, some in hosts for host in some if (":" in host) != (":" in underlay.local)})
        self.senders = self.senders or self._drivers.rules(self._table)
        senders = Senders(underlay.port, underlay.local, hosts)
        await asyncio.to_thread(self.senders.change, senders)

    def _tell_unreached(self, hosts: set[str]) -> None:
        """VXLAN goes over one version of IP."""
        if fresh := hosts - self._unreached:
            log.warning(
                "networks of the swarm do not lead to %s: this host has no such address", ", ".join(sorted(fresh))
            )
        self._unreached = hosts

    async def _take_nothing(self) -> None:
        """No network leads to other hosts in the open; what a former daemon left of rules goes, too."""

        await asyncio.to_thread((self.senders or self._drivers.rules(self._table)).remove)
        self.senders = None

    def _plain(self) -> bool:
        """Return True if a network is here that hosts share, and that is not encrypted."""
        lives = self._roster.by_name.values()
        return any(live.bridged and live.record.vni and not encrypted(live.record) for live in lives)

    # --- the tunnel of encrypted networks

    def _secret(self) -> bool:
        """Return True if an encrypted network is here that hosts share, or about to be."""
        lives = self._roster.by_name.values()
        return bool(self._coming) or any(live.bridged and live.record.vni and encrypted(live.record) for live in lives)

    def _guard(self) -> "wireguard.tunnel.WireguardTunnel | None":
        if self._tunnel is None and self._tunnel_settings is not None:
            self._tunnel = self._drivers.tunnel(self._tunnel_settings, self._look_soon)
        return self._tunnel

    async def _tell_tunnel(self, underlay: Underlay, underlay_mtu: int) -> None:
        """Set the tunnel up before there is anything that could send: what encrypted networks send goes through it."""

        if (tunnel := self._guard()) is not None:
            mtu = underlay_mtu - WIREGUARD_OVERHEAD[ip_address(underlay.local).version]
            self._mesh = underlay.mesh, mtu
            await tunnel.apply(underlay.mesh, mtu)

    async def _end_tunnel(self) -> None:
        """No encrypted network is left here. What a former daemon left is found at the start (`restore.sweep`)."""
        self._mesh = None
        if self._tunnel is not None:
            await self._tunnel.remove()
            self._tunnel = None

    # --- what somebody deletes

    def mend(self) -> None:
        """A bridge was made anew: what was on it comes back. Blocks."""
        for way in list(self._open.values()):
            try:
                way.mend()
            except (HuskError, OSError) as error:
                # Another bridge may be missing, too: it is made when somebody needs it.
                log.warning("overlay interface %s is not as it should be: %s", way.settings.interface, error)

    def _listen(self) -> None:
        """Hear of interfaces that somebody deletes."""
        if self._deletions is None:
            self._deletions = self._drivers.deletions(self._noticed)

    def _noticed(self, deleted: Collection[str] | None) -> None:
        ours = {way.settings.interface for way in self._open.values()}
        if deleted is None or not ours.isdisjoint(deleted):
            self._look_soon()

    def _look_soon(self) -> None:
        if not self._looking:
            self._looking = True
            self._tasks.spawn(self._look_again(), "overlay networks: make again what was deleted")

    async def _look_again(self) -> None:
        """Until all is there; later each time that it does not last."""
        loop = asyncio.get_running_loop()
        self._pause = self._soon if loop.time() - self._looked_at >= SETTLED else min(self._pause * 2, LATE)
        try:
            while True:
                await asyncio.sleep(self._pause)
                self._looked_at = loop.time()
                try:
                    return await self.look()
                except (HuskError, OSError) as error:
                    log.warning("an overlay network does not reach other hosts: %s", error)
                    self._pause = min(self._pause * 2, LATE)
        finally:
            self._looking = False

    async def look(self) -> None:
        """Make again what was deleted, or has ended, of that which the host was told last. What one network fails with
        is raised when all others are as they should be."""
        async with self._changing:
            failed: list[HuskError | OSError] = []
            ways = list(self._open.values())
            if self._mesh is not None and self._tunnel is not None:
                try:
                    await self._tunnel.apply(*self._mesh)
                except (HuskError, OSError) as error:
                    failed.append(error)
                    ways = [way for way in ways if not way.settings.link]
            for way in [way for way in ways if not way.is_there]:
                log.warning("overlay interface %s was deleted: making it again", way.settings.interface)
                try:
                    await self._changes.to_its_end(asyncio.to_thread(way.mend), "overlay interface: make it again")
                except (HuskError, OSError) as error:
                    failed.append(error)
            if failed:
                raise failed[0]

    async def remove(self, network: Network) -> None:
        """The network ends here, whether a way was opened by this daemon or by an earlier one."""
        if network.driver != "overlay":
            return

        async with self._changing:
            self._open.pop(network.id, None)
            self._told.pop(network.id, None)
            await asyncio.to_thread(self._drivers.remove, interface_of(network), self._owner)
            if encrypted(network) and not self._secret():
                self._guard()
                await self._end_tunnel()
            if (network.vni or self.senders) and not encrypted(network) and not self._plain():
                await self._take_nothing()

    async def close(self, staying: Collection[Network]) -> None:
        """The daemon ends. Of networks that stay, so does the way to other hosts: the tunnel, the rules."""
        if self._deletions is not None:
            self._deletions.close()
            self._deletions = None
        await self._tasks.cancel_all()
        async with self._changing:
            if self._plain() and not any(network.vni and not encrypted(network) for network in staying):
                await self._take_nothing()
            if not any(encrypted(network) for network in staying):
                await self._end_tunnel()
            elif self._tunnel is not None:
                await self._tunnel.let_go()
