"""Tells a network which MAC an address has now, by an ARP and a neighbour advertisement that nobody asked for.

Who knew another MAC for the address, that of an earlier container, must not go on sending there.
"""

import asyncio
import logging
import socket
import struct
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

from husk.errors import HuskError
from husk.kernel import namespaces
from husk.network.ipam import mac_address
from husk.network.sandbox import Lease

log = logging.getLogger(__name__)

# A bridge with many ports takes milliseconds to pass it on, in which nobody wants to wait for a start.
_LATER = 0.2

_EVERYBODY = b"\xff" * 6
_ETHERNET = struct.Struct("!6s6sH")
_ARP, _IPV6 = 0x0806, 0x86DD
_ARP_REQUEST = struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1)
_ALL_NODES = IPv6Address("ff02::1")
_ALL_NODES_MAC = bytes.fromhex("333300000001")
_ICMP_6, _HOPS = 58, 255
_NEIGHBOUR_ADVERTISEMENT = 136
_OVERRIDE = 0x20000000
_TARGET_MAC = 2


def arp(mac: bytes, address: IPv4Address) -> bytes:
    """The frame that asks for one's own address: everybody who hears it notes whose it is. Pure."""
    question = _ARP_REQUEST + mac + address.packed + bytes(6) + address.packed
    return _ETHERNET.pack(_EVERYBODY, mac, _ARP) + question


def advertisement(mac: bytes, address: IPv6Address) -> bytes:
    """The frame that tells all nodes of an address, whatever they knew before. Pure."""
    head = struct.pack("!BBHI", _NEIGHBOUR_ADVERTISEMENT, 0, 0, _OVERRIDE)
    message = head + address.packed + struct.pack("!BB", _TARGET_MAC, 1) + mac
    pseudo = address.packed + _ALL_NODES.packed + struct.pack("!II", len(message), _ICMP_6)
    message = message[:2] + struct.pack("!H", checksum(pseudo + message)) + message[4:]
    header = struct.pack("!IHBB", 6 << 28, len(message), _ICMP_6, _HOPS) + address.packed + _ALL_NODES.packed
    return _ETHERNET.pack(_ALL_NODES_MAC, mac, _IPV6) + header + message


def checksum(data: bytes) -> int:
    """The Internet's. Pure."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def frames(lease: Lease) -> list[bytes]:
    """Make the frames that tell of the endpoint's addresses; none where it has no MAC of its own. Pure."""
    if not lease.mac_address:
        return []
    mac = bytes.fromhex(lease.mac_address.replace(":", ""))
    addresses = [ip_address(text) for text in (lease.ip_address, lease.ip6_address) if text]
    return [arp(mac, one) if isinstance(one, IPv4Address) else advertisement(mac, one) for one in addresses]


def usual(lease: Lease, address: str) -> bool:
    """Return True if the endpoint has the MAC that follows from this address of its own. Who knew the address before,
    knew it by that MAC, unless somebody had chosen another. Pure."""
    return lease.mac_address == mac_address(ip_address(address))


def delay(lease: Lease) -> float:
    """Return the seconds that the first word can wait: an endpoint with a usual MAC has hardly any news. Pure."""
    addresses = [text for text in (lease.ip_address, lease.ip6_address) if text]
    return _LATER if any(usual(lease, address) for address in addresses) else 0.0


class Acquaintances:
    """By which MAC addresses of a network were known."""

    def __init__(self) -> None:
        # Addresses that have had another MAC than the usual one.
        self._otherwise: set[str] = set()

    def is_news(self, lease: Lease) -> bool:
        """Note by which MAC these addresses are known from now on. Is that another one than before, for anybody?"""
        addresses = [text for text in (lease.ip_address, lease.ip6_address) if text]
        before = self._otherwise.intersection(addresses)
        self._otherwise.update(address for address in addresses if not usual(lease, address))
        return bool(before) or not all(usual(lease, address) for address in addresses)


def send(lease: Lease) -> None:
    """Say it once, from inside the sandbox. Blocks; raises OSError, also when the sandbox is gone."""
    if not (said := frames(lease)):
        return

    def speak() -> None:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_CLOEXEC) as channel:
            channel.bind((lease.interface, 0))
            for frame in said:
                channel.send(frame)

    namespaces.run_inside(Path(lease.sandbox_path), speak)


async def repeat(lease: Lease, times: int, interval: float, say: Callable[[Lease], None] = send) -> None:
    """Say it several times, with so many seconds between; to nobody when the sandbox is gone."""
    for number in range(times):
        await asyncio.sleep(interval if number else delay(lease))
        try:
            await asyncio.to_thread(say, lease)
        except (HuskError, OSError) as error:
            log.debug("endpoint %s is not announced any more: %s", lease.host_interface, error)
            return
