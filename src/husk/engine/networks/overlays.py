"""Overlay networks over several hosts: somebody who knows the swarm says who is where, and the host is made so.

A network without a `Way` is a bridge of this host alone, as on one host. `apply` is told all of it each time and
changes what is different; between two calls, and while no daemon runs, the kernel goes on as it was told last.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from husk.engine.model.network import MTU, Network
from husk.engine.networks.live import LiveNetwork, Roster
from husk.errors import HuskError

if TYPE_CHECKING:
    from husk.network.encryption import Party
    from husk.network.overlay import Overlay, OverlaySettings
    from husk.network.peers import Peer

log = logging.getLogger(__name__)

ENCRYPTED = "encrypted"


class Way(Struct, frozen=True):
    """How one network reaches other hosts: its number, this host's own addresses on it, and all of its endpoints."""

    vni: int
    own: str
    peers: "tuple[Peer, ...]"
    own6: str = ""


class Underlay(Struct, frozen=True):
    """What lies between the hosts: this one, the others, the UDP port, and the keys of encrypted networks."""

    local: "Party"
    port: int
    others: "tuple[Party, ...]" = ()
    keys: tuple[bytes, ...] = ()


def interface_of(network: Network) -> str:
    """The VXLAN interface beside the network's bridge."""
    return f"vx-{network.id[:12]}"


def encrypted(network: Network) -> bool:
    return network.options.get(ENCRYPTED, "false") not in ("false", "0")


class Overlays:
    def __init__(self, roster: Roster, owner: str) -> None:
        self._roster = roster
        self._owner = owner
        self._open: dict[str, Overlay] = {}
        self._told: dict[str, Way] = {}
        self._changing = asyncio.Lock()
        # The ports that policies of encryption are about; None while an earlier daemon's are not known.
        self._guarded: set[int] | None = None

    async def apply(self, underlay: Underlay, ways: Mapping[str, Way]) -> None:
        """Make exactly these networks, by id, reach other hosts; those that are not here are left out. What one of them
        fails with is raised when all others are as they should be."""
        from husk.network.overlay import underlay_mtu

        async with self._changing:
            lives = {live.record.id: live for live in self._roster.by_name.values() if live.record.driver == "overlay"}
            wanted = {id: way for id, way in ways.items() if id in lives and lives[id].bridged}
            needed = any(encrypted(lives[id].record) for id in wanted)
            await self._guard(underlay, needed)
            failed: list[HuskError | OSError] = []
            for id in [id for id in self._open if id not in wanted]:
                self._told.pop(id, None)
                try:
                    await self._open[id].close(remove=True)
                    del self._open[id]
                except (HuskError, OSError) as error:
                    failed.append(error)
            most = await asyncio.to_thread(underlay_mtu, underlay.local.address) if wanted else 0
            for id, way in wanted.items():
                try:
                    await self._lead(lives[id], underlay, way, most)
                except (HuskError, OSError) as error:
                    failed.append(error)
            if failed:
                raise failed[0]
            await self._unguard(underlay, needed)

    async def _lead(self, live: LiveNetwork, underlay: Underlay, way: Way, underlay_mtu: int) -> None:
        """Let one network reach other hosts."""
        from husk.network.overlay import Overlay

        id = live.record.id
        settings = self._settings(live, underlay, way, underlay_mtu)
        # Somebody may have deleted the interface.
        if id not in self._open or self._open[id].settings != settings or not self._open[id].is_there:
            await live.driver.fit(settings.mtu)
            self._open[id] = await Overlay.open(settings)
            self._told.pop(id, None)
        # To look at what the kernel has takes longer the more of it there is.
        if self._told.get(id) != way:
            await self._open[id].tell(way.peers)
            self._told[id] = way

    async def _guard(self, underlay: Underlay, needed: bool) -> None:
        """What encrypted networks send is encrypted before there is anything that could send."""
        if needed:
            from husk.network import encryption

            port = encryption.port_of(underlay.port)
            self._guarded = (self._guarded or set()) | {port}
            await asyncio.to_thread(encryption.apply, underlay.local, underlay.others, underlay.keys, port)

    async def _unguard(self, underlay: Underlay, needed: bool) -> None:
        """Nothing sends to these ports any more."""
        from husk.network import encryption

        port = encryption.port_of(underlay.port)
        for old in ({port} if self._guarded is None else self._guarded) - ({port} if needed else set()):
            await asyncio.to_thread(encryption.remove, old)
        self._guarded = {port} if needed else set()

    def _settings(self, live: LiveNetwork, underlay: Underlay, way: Way, underlay_mtu: int) -> "OverlaySettings":
        from ipaddress import ip_address

        from husk.network import encryption, overlay

        network, local = live.record, underlay.local.address
        secret = encrypted(network)
        most = overlay.largest_mtu(underlay_mtu, ip_address(local).version, secret)
        return overlay.OverlaySettings(
            bridge=live.driver.interface,
            interface=interface_of(network),
            owner=self._owner,
            vni=way.vni,
            port=encryption.port_of(underlay.port) if secret else underlay.port,
            local=local,
            own=way.own,
            own6=way.own6,
            mtu=min(most, int(network.options.get(MTU) or most)),
        )

    def mend(self) -> None:
        """A bridge was made anew: what was on it comes back. Blocks."""
        for way in list(self._open.values()):
            try:
                way.mend()
            except (HuskError, OSError) as error:
                # Another bridge may be missing, too: it is made when somebody needs it.
                log.warning("overlay interface %s is not as it should be: %s", way.settings.interface, error)

    async def remove(self, network: Network) -> None:
        """The network ends here, whether a way was opened by this daemon or by an earlier one."""
        if network.driver != "overlay":
            return
        from husk.network import host

        async with self._changing:
            self._open.pop(network.id, None)
            self._told.pop(network.id, None)
            await asyncio.to_thread(host.remove, interface_of(network), self._owner)
