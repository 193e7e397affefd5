"""Frames as a hostile container makes them, and the socket it sends them from. No container's program is needed."""

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from pathlib import Path

from husk.kernel import namespaces
from husk.network.announcement import checksum

EVERYBODY = "ff:ff:ff:ff:ff:ff"
ALL_NODES = "ff02::1"
ALL_NODES_MAC = "33:33:00:00:00:01"
_ARP, _IPV4, _IPV6 = 0x0806, 0x0800, 0x86DD
_UDP, _ICMP, _ICMP_6 = 17, 1, 58


@contextmanager
def raw_socket(sandbox: str | Path, interface: str = "eth0") -> Iterator[socket.socket]:
    """Open a socket as CAP_NET_RAW gives one to a container: any frame in, any frame out."""

    def make() -> socket.socket:
        made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        made.bind((interface, 3))
        made.settimeout(5)
        return made

    with namespaces.run_inside(Path(sandbox), make) as channel:
        yield channel


def mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def ethernet(source: str, target: str, kind: int, payload: bytes) -> bytes:
    return mac(target) + mac(source) + struct.pack("!H", kind) + payload


def arp(source: str, sender: str, *, reply: bool, to: str = EVERYBODY, target: str = "") -> bytes:
    """`source` says that it has the address `sender`."""
    body = struct.pack("!HHBBH", 1, 0x0800, 6, 4, 2 if reply else 1) + mac(source) + IPv4Address(sender).packed
    body += (mac(to) if reply else bytes(6)) + IPv4Address(target or sender).packed
    return ethernet(source, to, _ARP, body)


def ipv4(source: str, to: str, sender: str, receiver: str, protocol: int, payload: bytes) -> bytes:
    sent, received = IPv4Address(sender).packed, IPv4Address(receiver).packed
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 1, 0, 64, protocol, 0) + sent + received
    head = head[:10] + struct.pack("!H", checksum(head)) + head[12:]
    return ethernet(source, to, _IPV4, head + payload)


def ipv6(source: str, to: str, sender: str, receiver: str, protocol: int, payload: bytes) -> bytes:
    sent, received = IPv6Address(sender).packed, IPv6Address(receiver).packed
    head = struct.pack("!IHBB", 6 << 28, len(payload), protocol, 255) + sent + received
    return ethernet(source, to, _IPV6, head + payload)


def udp(source: str, to: str, sender: tuple[str, int], receiver: tuple[str, int], data: bytes) -> bytes:
    head = struct.pack("!HHHH", sender[1], receiver[1], 8 + len(data), 0)
    if ":" in sender[0]:
        packed = ip_address(sender[0]).packed + ip_address(receiver[0]).packed
        even = data + bytes(len(data) % 2)
        total = checksum(packed + struct.pack("!II", 8 + len(data), _UDP) + head + even)
        return ipv6(source, to, sender[0], receiver[0], _UDP, head[:6] + struct.pack("!H", total) + data)
    return ipv4(source, to, sender[0], receiver[0], _UDP, head + data)


def icmp6(source: str, to: str, sender: str, receiver: str, kind: int, body: bytes) -> bytes:
    message = struct.pack("!BBH", kind, 0, 0) + body
    pseudo = IPv6Address(sender).packed + IPv6Address(receiver).packed + struct.pack("!II", len(message), _ICMP_6)
    message = message[:2] + struct.pack("!H", checksum(pseudo + message)) + body
    return ipv6(source, to, sender, receiver, _ICMP_6, message)


def router_advertisement(source: str, prefix: str, sender: str = "fe80::666") -> bytes:
    """`source` is a router, and everybody gets an address of the prefix."""
    network = IPv6Network(prefix)
    body = struct.pack("!BBHII", 64, 0, 1800, 0, 0)
    body += struct.pack("!BB", 1, 1) + mac(source)
    body += struct.pack("!BBBBIII", 3, 4, network.prefixlen, 0xC0, 86400, 14400, 0) + network.network_address.packed
    return icmp6(source, ALL_NODES_MAC, sender, ALL_NODES, 134, body)


def neighbour_advertisement(source: str, to: str, address: str, receiver: str, *, solicited: bool) -> bytes:
    """`source` says that it has the address, whatever was known before."""
    flags = 0x60000000 if solicited else 0x20000000
    body = struct.pack("!I", flags) + IPv6Address(address).packed + struct.pack("!BB", 2, 1) + mac(source)
    return icmp6(source, to, address, receiver, 136, body)


def redirect(source: str, to: str, sender: str, receiver: str, *, target: str, better: str) -> bytes:
    """The router `sender` says that `better` leads to `target`."""
    inner = struct.pack("!BBHHHBBH", 0x45, 0, 28, 1, 0, 64, _UDP, 0)
    inner += IPv4Address(receiver).packed + IPv4Address(target).packed
    inner = inner[:10] + struct.pack("!H", checksum(inner)) + inner[12:] + struct.pack("!HHHH", 9, 9, 8, 0)
    message = struct.pack("!BBH", 5, 1, 0) + IPv4Address(better).packed + inner
    message = message[:2] + struct.pack("!H", checksum(message)) + message[4:]
    return ipv4(source, to, sender, receiver, _ICMP, message)
