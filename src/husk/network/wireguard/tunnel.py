"""This host's device of WireGuard: made when the first encrypted network comes, gone with the last.

Its private key is in the device and in the daemon's memory, and on no disk. A daemon that starts finds it in the
device; where there is none any more, a new one is made, and the others have to be told.
"""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_interface

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from husk.aio.tasks import Tasks
from husk.errors import HuskError, SystemFault, Unavailable
from husk.kernel import process, rtaddresses, rtnetlink, sysctl
from husk.kernel.netlink import NetlinkSocket
from husk.network import host
from husk.network.settings import TunnelSettings
from husk.network.wireguard.device import Device
from husk.network.wireguard.fence import Fence
from husk.network.wireguard.module import Module
from husk.network.wireguard.parties import Mesh, difference, text_of_key
from husk.network.wireguard.program import Program

log = logging.getLogger(__name__)

# What IPv6 wants of any interface. What is larger than fits is not sent: networks know what does (`largest_mtu`).
_LEAST_MTU = 1280
_PREFIX = 64
# No address but the one we give, no router, no neighbour that is asked for.
_SETTINGS = (("disable_ipv6", "0"), ("addr_gen_mode", "1"), ("accept_ra", "0"), ("autoconf", "0"), ("accept_dad", "0"))


class TunnelHost:
    """The host under the tunnel: its interface, its rules, and what may drive it. All of it blocks."""

    def __init__(self, settings: TunnelSettings) -> None:
        self._interface, self._owner = settings.interface, settings.owner
        self.fence = Fence(settings.table)

    def index(self) -> int:
        """Return the interface's number; 0 where it is not there."""
        return next((index for index, name in socket.if_nameindex() if name == self._interface), 0)

    def find(self) -> rtnetlink.Link | None:
        return host.find(self._interface)

    def module(self) -> Module:
        return Module(self._interface)

    def program(self) -> Program:
        return Program(self._interface)

    def mark(self) -> None:
        """Write on the interface whose it is."""
        with NetlinkSocket() as netlink:
            netlink.execute(rtnetlink.set_alias(self._interface, self._owner))

    def lift(self) -> None:
        """The kernel's own takes its port now."""
        name = self._interface
        for setting, value in _SETTINGS:
            try:
                sysctl.write(f"net/ipv6/conf/{name}/{setting}", value)
            except FileNotFoundError as error:
                if setting == "disable_ipv6":
                    raise Unavailable(
                        f"encrypted networks need IPv6 between hosts, inside of what is encrypted, and "
                        f"{socket.gethostname()} has none: start its kernel without ipv6.disable=1"
                    ) from error
        with NetlinkSocket() as netlink:
            netlink.execute(rtnetlink.set_up(name))

    def number(self, own: str, mtu: int) -> None:
        """Let the interface have this address and no other."""
        index, address = self.index(), ip_interface(f"{own}/{_PREFIX}")
        with NetlinkSocket() as netlink:
            there = map(rtaddresses.parse_address, netlink.dump(rtaddresses.list_addresses(6)))
            others = [one.interface for one in there if one.index == index and one.interface != address]
            netlink.execute(
                *(rtaddresses.delete_address(index, one) for one in others),
                rtnetlink.set_mtu(self._interface, mtu),
                rtaddresses.add_address(index, address),
            )

    def remove(self) -> None:
        """Remove the interface, if it is ours."""
        host.remove(self._interface, self._owner)


class WireguardTunnel:
    """Changes follow one another: the caller sees to that. What blocks is done in threads, and to its end: a caller who
    is cancelled meanwhile hears of it afterwards, so that nothing goes on beside the next change."""

    def __init__(
        self, settings: TunnelSettings, ended: Callable[[], None] = lambda: None, under: TunnelHost | None = None
    ) -> None:
        """`ended` hears that the program that carries it has ended, though it was not told to. `under` is this host
        unless said otherwise."""
        self._settings = settings
        self._ended = ended
        self._host = under or TunnelHost(settings)
        self.fence = self._host.fence
        self._device: Device | None = None
        self._key = b""
        self._applied: tuple[Mesh, int] | None = None
        self._tasks = Tasks()
        self._changes = Tasks()

    @property
    def interface(self) -> str:
        return self._settings.interface

    @property
    def public(self) -> tuple[str, int] | None:
        """The public key and the port, which other hosts have to know. None while there is no device."""
        return (text_of_key(_public(self._key)), self._settings.port) if self._device is not None else None

    async def open(self) -> None:
        """Make the device, with a key and its port; nothing is done where it is there. Unavailable says what lacks."""
        if self._device is not None and self._is_there():
            return
        await self._changes.to_its_end(self._open(), "WireGuard: open")

    async def apply(self, mesh: Mesh, underlay_mtu: int) -> None:
        """Let exactly these be known. `underlay_mtu` is what fits between hosts, beside WireGuard's own."""
        await self.open()
        if self._applied != (mesh, underlay_mtu):
            await self._changes.to_its_end(self._tell(mesh, underlay_mtu), "WireGuard: tell of hosts")

    async def let_go(self) -> None:
        """The daemon ends; the device goes on."""
        await self._changes.to_its_end(self._let_go(), "WireGuard: let go")

    async def remove(self) -> None:
        """Nothing of it is left, be it a former daemon's. Safe to call twice."""
        await self._changes.to_its_end(self._end(), "WireGuard: remove")

    def _is_there(self) -> bool:
        alive = self._device is not None and (self._device.pidfd < 0 or not process.has_ended(self._device.pidfd))
        return alive and self._host.index() > 0

    async def _open(self) -> None:
        await self._let_go()
        device, self._key = await asyncio.to_thread(self._start)
        self._device = device
        if device.pidfd >= 0:
            self._tasks.spawn(self._watch(device.pidfd), "WireGuard")

    async def _tell(self, mesh: Mesh, underlay_mtu: int) -> None:
        self._applied = None  # what fails may be done by half
        await asyncio.to_thread(self._configure, mesh, underlay_mtu)
        self._applied = mesh, underlay_mtu

    async def _end(self) -> None:
        device = self._device
        await self._tasks.cancel_all()
        self._device, self._key, self._applied = None, b"", None
        await asyncio.to_thread(self._remove, device)

    async def _let_go(self) -> None:
        await self._tasks.cancel_all()
        self._applied = None
        if self._device is not None:
            self._device.let_go()
            self._device = None

    async def _watch(self, pidfd: int) -> None:
        await process.wait_exit(pidfd)
        log.error("WireGuard's program for encrypted networks has ended: starting it again")
        self._ended()

    # --- in threads

    def _start(self) -> tuple[Device, bytes]:
        device: Device | None = None
        try:
            device = self._make()
            self._host.mark()
            state = device.read()
            key = state.key or self._key or _new_key()
            if change := difference(state, key, self._settings.port, state.parties.values()):
                device.write(change)
            self._host.lift()
        except (OSError, HuskError) as error:
            self._discard(device)
            if isinstance(error, HuskError):
                raise
            if error.errno == errno.EADDRINUSE:
                raise Unavailable(
                    f"UDP port {self._settings.port}, for encrypted networks, is in use on {socket.gethostname()}: "
                    "give the daemon another one (--wireguard-port)"
                ) from error
            raise SystemFault(f"WireGuard, for encrypted networks, cannot be set up: {error}") from error
        return device, key

    def _make(self) -> Device:
        name, found = self.interface, self._host.find()
        if _is_foreign(found, self._settings.owner):
            raise Unavailable(
                f"{socket.gethostname()} has an interface {name}, which is what the daemon's own for encrypted networks"
                f" is called, and somebody else made it: remove it there, or rename it (ip link set {name} name OTHER)"
            )
        if found is None or found.kind == "wireguard":
            module = self._host.module()
            if module.start():
                return module
        program = self._host.program()
        program.start()
        return program

    def _discard(self, device: Device | None) -> None:
        """Remove what was begun, so that nothing is left behind."""
        with suppress(OSError, HuskError):
            found = self._host.find()
            if found is not None and not _is_foreign(found, self._settings.owner):
                self._host.mark()
            self._remove(device)

    def _configure(self, mesh: Mesh, underlay_mtu: int) -> None:
        assert self._device is not None, "it was opened"
        try:
            self._host.number(mesh.own, max(_LEAST_MTU, underlay_mtu))
            self.fence.put(self.interface, mesh.own, mesh.vxlan_port)
            state = self._device.read()
            if change := difference(state, self._key, self._settings.port, mesh.parties):
                self._device.write(change)
        except OSError as error:
            raise SystemFault(f"WireGuard, for encrypted networks, cannot be told of other hosts: {error}") from error

    def _remove(self, device: Device | None) -> None:
        if device is not None:
            device.end()
        elif not _is_foreign(self._host.find(), self._settings.owner):
            self._host.program().end()
        self._host.remove()
        self.fence.remove()


def remove_left(settings: TunnelSettings, under: TunnelHost | None = None) -> None:
    """Remove what a daemon that was killed has left of its device, rules and socket too, though the interface may be
    gone. Blocks."""
    under = under or TunnelHost(settings)
    if not _is_foreign(under.find(), settings.owner):
        under.program().end()
    if (link := under.find()) is not None and host.is_unmarked(link):
        under.mark()
    under.remove()
    under.fence.remove()


def _is_foreign(link: rtnetlink.Link | None, owner: str) -> bool:
    """Return True if it is somebody else's: then nothing is done with it, nor with a program that drives it."""
    return link is not None and link.alias != owner and not host.is_unmarked(link)


def _new_key() -> bytes:
    return X25519PrivateKey.generate().private_bytes_raw()


def _public(key: bytes) -> bytes:
    return X25519PrivateKey.from_private_bytes(key).public_key().public_bytes_raw()
