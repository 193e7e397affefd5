"""An overlay network over several hosts, as the engine would open it there: bridge, VXLAN, endpoints.

    net = OverlayNetwork(tmp_path, vni=4097)
    here, there = net.endpoint(first, "10.0.9.5"), net.endpoint(second, "10.0.9.6")
    net.tell()
    assert pings(here.sandbox, there.address)

What a daemon would keep in memory ends with each call: between two calls it is as if no daemon ran.
"""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from functools import partial
from ipaddress import ip_address, ip_interface, ip_network
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from husk.kernel import namespaces
from husk.network import overlay
from husk.network.bridge import BridgeDriver
from husk.network.endpoint import EndpointOptions
from husk.network.firewall import Firewall
from husk.network.ipam import mac_address
from husk.network.overlay import Overlay, OverlaySettings, largest_mtu, underlay_mtu
from husk.network.peers import OverlayPeer
from husk.network.sandbox import Lease
from husk.network.settings import BridgeSettings
from husk.swarm.model.settings import DATA_PATH_PORT
from tests.support.hosts import Host

T = TypeVar("T")
OWNER = "husk-test"
_FIREWALLS: WeakKeyDictionary[Host, Firewall] = WeakKeyDictionary()


def as_peers(addresses: Iterable[str], address: str, at: str) -> list[OverlayPeer]:
    """Return a host as other hosts know it: `addresses` are its own on the network, `address` gives the MAC."""
    mac = mac_address(ip_address(address))
    return [OverlayPeer(own, mac, at) for own in addresses if own]


class Endpoint(NamedTuple):
    host: Host
    lease: Lease

    @property
    def address(self) -> str:
        return self.lease.ip_address

    @property
    def sandbox(self) -> Path:
        return Path(self.lease.sandbox_path)

    @property
    def peers(self) -> list[OverlayPeer]:
        found = filter(None, (self.lease.ip_address, self.lease.ip6_address))
        return [OverlayPeer(address, self.lease.mac_address, self.host.address) for address in found]

    def inside(self, work: Callable[[], T]) -> T:
        return namespaces.run_inside(self.sandbox, work)


class OverlayNetwork:
    """One network on all hosts that it has endpoints on. The hosts' own addresses are its last."""

    def __init__(
        self,
        directory: Path,
        vni: int,
        subnet: str = "10.0.9.0/24",
        *,
        port: int = DATA_PATH_PORT,
        encrypted: bool = False,
        internal: bool = False,
        underlay6: bool = False,
        subnet6: str = "",
    ) -> None:
        self._directory = directory
        self.vni, self.port, self.encrypted, self.underlay6 = vni, port, encrypted, underlay6
        self.internal = internal
        self.subnet6 = ip_network(subnet6) if subnet6 else None
        self.subnet = ip_network(subnet)
        self.endpoints: list[Endpoint] = []
        self.hosts: dict[str, Host] = {}

    @property
    def bridge(self) -> str:
        return f"br-{self.vni}"

    @property
    def interface(self) -> str:
        return f"vx-{self.vni}"

    def underlay(self, host: Host) -> str:
        return host.address6 if self.underlay6 else host.address

    def own(self, host: Host) -> str:
        """The host's own address on the network."""
        return str(self.subnet.broadcast_address - _number(host))

    def own6(self, host: Host) -> str:
        """As `own`; empty without IPv6."""
        return str(self.subnet6.network_address + 0xFFFF - _number(host)) if self.subnet6 else ""

    def mtu(self, host: Host) -> int:
        underlay = host.inside(lambda: underlay_mtu(self.underlay(host)))
        return largest_mtu(underlay, 6 if self.underlay6 else 4, self.encrypted)

    def settings(self, host: Host) -> OverlaySettings:
        return OverlaySettings(
            self.bridge,
            self.interface,
            OWNER,
            self.vni,
            self.port,
            self.underlay(host),
            self.own(host),
            self.mtu(host),
            self.own6(host),
        )

    def bridge_settings(self, host: Host) -> BridgeSettings:
        gateway = ip_interface((self.subnet.network_address + 1, self.subnet.prefixlen))
        return BridgeSettings(
            self.bridge,
            OWNER,
            self._directory / f"{host.name}-{self.vni}",
            bip=str(gateway),
            mtu=self.mtu(host),
            warm=0,
            announcements=0,
            internal=self.internal,
            own=tuple(filter(None, (self.own(host), self.own6(host)))),
            reserved=tuple(filter(None, (self.own(host), self.own6(host)))),
            bip6=f"{self.subnet6.network_address + 1}/{self.subnet6.prefixlen}" if self.subnet6 else "",
        )

    # --- what a daemon does

    def open(self, host: Host) -> None:
        """A daemon starts there, or starts again: it finds what is there by its records."""
        self.hosts[host.name] = host

        async def opening() -> None:
            driver = await self._driver(host)
            await Overlay.open(self.settings(host))
            overlay.fit(self._leases(host), self.mtu(host))
            await driver.close(remove=False)

        _run(host, opening)

    def endpoint(self, host: Host, address: str) -> Endpoint:
        """A container gets on the network there. Nobody is told of it."""
        if host.name not in self.hosts:
            self.open(host)

        async def acquiring() -> Lease:
            driver = await self._driver(host)
            lease = await driver.acquire(EndpointOptions(address=address))
            await driver.close(remove=False)
            return lease

        made = Endpoint(host, _run(host, acquiring))
        self.endpoints.append(made)
        return made

    def remove(self, endpoint: Endpoint) -> None:
        """The container ends. Nobody is told of it."""
        self.endpoints.remove(endpoint)

        async def releasing() -> None:
            driver = await self._driver(endpoint.host, endpoint.lease)
            driver.release(endpoint.lease)
            await driver.close(remove=False)

        _run(endpoint.host, releasing)

    def peers(self) -> list[OverlayPeer]:
        """All endpoints, and the hosts themselves."""
        found = [peer for endpoint in self.endpoints for peer in endpoint.peers]
        if self.underlay6:
            at = {host.address: host.address6 for host in self.hosts.values()}
            found = [OverlayPeer(peer.address, peer.mac, at[peer.host]) for peer in found]
        for host in self.hosts.values():
            found += as_peers([self.own(host), self.own6(host)], self.own(host), self.underlay(host))
        return found

    def tell(self) -> list[int]:
        """All hosts hear of all endpoints; how much each had to change."""
        peers = self.peers()
        return [host.inside(partial(overlay.tell, self.settings(host), peers))[1] for host in self.hosts.values()]

    def close(self, host: Host) -> None:
        """The network ends there."""
        for endpoint in [one for one in self.endpoints if one.host is host]:
            self.remove(endpoint)

        async def closing() -> None:
            firewall = _firewall(host)
            driver = await BridgeDriver.open(self.bridge_settings(host), None, [], firewall)
            way = await Overlay.open(self.settings(host))
            await way.close(remove=True)
            await driver.close(remove=True)
            await asyncio.to_thread(firewall.remove)

        _run(host, closing)
        del self.hosts[host.name]

    def _leases(self, host: Host) -> list[Lease]:
        return [endpoint.lease for endpoint in self.endpoints if endpoint.host is host]

    async def _driver(self, host: Host, *more: Lease) -> BridgeDriver:
        firewall = _firewall(host)
        leases = [*self._leases(host), *more]
        driver = await BridgeDriver.open(self.bridge_settings(host), str(self.subnet), leases, firewall)
        await asyncio.to_thread(firewall.apply)
        return driver


def _number(host: Host) -> int:
    return int(host.name.removeprefix("host"))


def _firewall(host: Host) -> Firewall:
    """One for all networks of a host."""
    return _FIREWALLS.setdefault(host, Firewall(OWNER))


def _run(host: Host, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    return host.inside(lambda: asyncio.run(work()))


@contextlib.contextmanager
def echo(where: Callable[[Callable[[], socket.socket]], socket.socket], port: int, word: str = "") -> Iterator[None]:
    """A TCP server that tells each client `word` and the address it sees it at, and then sends back what it gets."""

    def listen() -> socket.socket:
        made = socket.create_server(("", port))
        made.settimeout(0.05)
        return made

    server = where(listen)
    ended = threading.Event()
    serving: list[threading.Thread] = []

    def serve(channel: socket.socket, peer: str) -> None:
        with channel, contextlib.suppress(OSError):
            channel.settimeout(30)
            channel.sendall(f"{word} {ip_address(peer)}\n".encode())
            while not ended.is_set() and (data := channel.recv(1 << 16)):
                channel.sendall(data)

    def accept() -> None:
        while not ended.is_set():
            with contextlib.suppress(TimeoutError):
                channel, peer = server.accept()
                serving.append(threading.Thread(target=serve, args=(channel, peer[0]), daemon=True))
                serving[-1].start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield
    finally:
        ended.set()
        accepting.join()
        server.close()


class Connection:
    """A client of `echo` in a sandbox."""

    def __init__(
        self, where: Callable[[Callable[[], socket.socket]], socket.socket], address: str, port: int, seconds: float = 5
    ) -> None:
        self.channel = where(lambda: socket.create_connection((address, port), timeout=seconds))
        self._file = self.channel.makefile("rb")
        self.word, self.seen_at = self._file.readline().decode().rstrip("\n").split(" ")

    def says(self, data: bytes) -> bool:
        """Tell if it goes there and back."""
        threading.Thread(target=self.channel.sendall, args=(data,), daemon=True).start()
        return self._file.read(len(data)) == data

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self.channel.close()
