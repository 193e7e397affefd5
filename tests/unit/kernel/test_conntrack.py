"""Conversations that are forgotten, told from bytes as the kernel sends them."""

import socket
from ipaddress import ip_address
from typing import Any

import pytest

from husk.kernel import conntrack
from husk.kernel.netlink import NetlinkMessage, attribute


def conversation(address: str, port: int, protocol: int = socket.IPPROTO_UDP) -> bytes:
    packed = ip_address(address).packed
    place = attribute(4 if len(packed) == 16 else 2, packed)
    way = attribute(1, bytes([protocol])) + attribute(3, port.to_bytes(2))
    original = attribute(1, place) + attribute(2, way)
    family = socket.AF_INET6 if len(packed) == 16 else socket.AF_INET
    return bytes([family, 0, 0, 0]) + attribute(1, original)


class Kernel:
    def __init__(self, *known: bytes) -> None:
        self.known = list(known)
        self.deleted: list[bytes] = []

    def __call__(self, family: int) -> "Kernel":
        return self

    def __enter__(self) -> "Kernel":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def dump(self, message: NetlinkMessage) -> list[bytes]:
        return self.known

    def attempt(self, messages: list[NetlinkMessage]) -> list[Any]:
        self.deleted += [message.payload for message in messages]
        return [None]


def test_udp_with_these_ports_or_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(
        conversation("10.0.0.1", 53),
        conversation("10.0.0.2", 99),
        conversation("fd00::9", 99),
        conversation("10.0.0.3", 99),
        conversation("10.0.0.1", 53, socket.IPPROTO_TCP),
        bytes(4),
    )
    monkeypatch.setattr(conntrack, "NetlinkSocket", kernel)
    conntrack.forget_udp([53], [ip_address("10.0.0.2"), ip_address("fd00::9")])
    assert [payload[0] for payload in kernel.deleted] == [socket.AF_INET, socket.AF_INET, socket.AF_INET6]
    asked = [address for address in ("10.0.0.1", "10.0.0.2", "fd00::9", "10.0.0.3")
             if any(ip_address(address).packed in payload for payload in kernel.deleted)]  # fmt: skip
    assert asked == ["10.0.0.1", "10.0.0.2", "fd00::9"]
