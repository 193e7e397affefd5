"""A container that comes to a network tells it its MAC, as dockerd's do."""

import socket
from ipaddress import IPv4Address, IPv6Address

import pytest

from tests.integration.networks.conftest import Network, address6
from tests.support import frames


def heard(raw: socket.socket, *wanted: bytes) -> None:
    """Wait until frames with these contents have come."""
    missing = list(wanted)
    while missing:
        frame = raw.recv(2000)
        missing = [one for one in missing if one not in frame]


def arp(mac: str, address: str) -> bytes:
    sender = frames.mac(mac) + IPv4Address(address).packed
    return bytes.fromhex("0001080006040001") + sender + bytes(6) + IPv4Address(address).packed


def mac(net: Network, container: str, network: str) -> str:
    return net.inspect(container, f'{{{{(index .NetworkSettings.Networks "{network}").MacAddress}}}}')


@pytest.mark.parametrize("way", ["start", "connect"])
def test_a_newcomer_is_announced(net, way):
    net.create("six", "--ipv6")
    net.run("listener", "--network", "six")
    with frames.raw_socket(net.sandbox("listener")) as raw:
        if way == "start":
            net.run("newcomer", "--network", "six")
        else:
            net.run("newcomer")
            net.daemon.docker("network", "connect", "six", "newcomer")
        own, own6 = net.address("newcomer", "six"), IPv6Address(address6(net, "newcomer", "six")).packed
        told = bytes.fromhex("0201") + frames.mac(mac(net, "newcomer", "six"))
        heard(raw, arp(mac(net, "newcomer", "six"), own), own6 + told)


def test_not_where_the_network_wants_none(net):
    net.create("silent", "-o", "com.docker.network.advertise_addr_nmsgs=0")
    net.run("listener", "--network", "silent")
    with frames.raw_socket(net.sandbox("listener")) as raw:
        net.run("newcomer", "--network", "silent")
        own = net.address("newcomer", "silent")
        assert net.pings("newcomer", net.address("listener", "silent"))
        raw.setblocking(False)
        announced = arp(mac(net, "newcomer", "silent"), own)
        seen = []
        try:
            while True:
                seen.append(raw.recv(2000))
        except BlockingIOError:
            assert seen and not any(announced in frame for frame in seen)


def test_a_bad_wish_is_refused_in_dockers_words(net):
    done = net.daemon.docker("network", "create", "-o", "com.docker.network.advertise_addr_ms=99", "bad", check=False)
    assert "com.docker.network.advertise_addr_ms must be in the range 100 to 2000" in done.stderr
