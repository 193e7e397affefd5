"""Encryption between hosts, as the kernel does it and as it is seen on the wire.

Where the kernel has no IPsec, only that nothing leaves a host readable is tested.
"""

import socket
from collections.abc import Iterator
from functools import partial

import pytest

from husk.errors import Unavailable
from husk.kernel import xfrm
from husk.network import encryption, overlay
from husk.network.encryption import Party
from husk.network.overlay import OverlaySettings
from tests.support.hosts import Host, Hosts
from tests.support.overlays import as_peers

PORT = encryption.port_of(overlay.DEFAULT_PORT)
OLD, NEW = b"an old secret of hosts", b"a new secret of hosts!"
WORD = b"this is not to be read by anybody else"


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with Hosts(2) as hosts:
        yield hosts


@pytest.fixture
def ipsec() -> None:
    try:
        encryption.require()
    except Unavailable as error:
        pytest.skip(error.message)


def parties(hosts: Hosts, epoch: int = 1) -> list[Party]:
    return [Party(host.address, epoch) for host in hosts]


def give(host: Host, everybody: list[Party], *keys: bytes) -> int:
    local = next(party for party in everybody if party.address == host.address)
    return host.inside(lambda: encryption.apply(local, everybody, keys, PORT))


def arrives(sender: Host, receiver: Host, word: bytes = WORD) -> bool:
    """Whether a datagram for the port does."""

    def listen() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind((receiver.address, PORT))
        made.settimeout(1)
        return made

    with (
        receiver.inside(listen) as ear,
        sender.inside(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as mouth,
    ):
        try:
            mouth.sendto(word, (receiver.address, PORT))
            return ear.recv(100) == word
        except OSError:
            return False


def test_without_keys_nothing_leaves_a_host_and_nothing_comes_in(hosts: Hosts) -> None:
    first, second = hosts
    assert arrives(first, second)
    give(first, parties(hosts))
    with hosts.listening() as heard:
        assert not arrives(first, second)
        assert not arrives(second, first)
    assert not [frame for frame in heard if WORD in frame and frame[26:30] == socket.inet_aton(first.address)]
    assert give(first, parties(hosts)) == 0
    for _ in range(2):
        first.inside(lambda: encryption.remove(PORT))
    assert first.left() == []
    assert arrives(first, second)


def test_a_kernel_without_ipsec_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xfrm, "_CIPHER", b"no such cipher")
    with pytest.raises(Unavailable, match="the kernel of this host does not have"):
        encryption.require()


@pytest.mark.usefixtures("ipsec")
def test_what_hosts_send_is_not_readable_on_the_wire(hosts: Hosts) -> None:
    first, second = hosts
    everybody = parties(hosts)
    for host in hosts:
        give(host, everybody, OLD)
    with hosts.listening() as heard:
        assert arrives(first, second) and arrives(second, first)
    packets = [frame for frame in heard if frame[12:14] == b"\x08\x00"]
    assert {frame[23] for frame in packets} == {50}
    assert not [frame for frame in heard if WORD in frame]
    assert [give(host, everybody, OLD) for host in hosts] == [0, 0]
    assert first.inside(lambda: encryption.running(everybody[0], PORT))
    for host in hosts:
        host.inside(lambda: encryption.remove(PORT))
        assert host.left() == []
    assert not first.inside(lambda: encryption.running(everybody[0], PORT))


@pytest.mark.usefixtures("ipsec")
def test_keys_are_changed_without_loss(hosts: Hosts) -> None:
    first, second = hosts
    everybody = parties(hosts)
    for host in hosts:
        give(host, everybody, OLD)
    for keys in ((OLD,), (OLD, NEW), (NEW, OLD), (NEW,)):
        for host in hosts:
            give(host, everybody, *keys)
            assert arrives(first, second) and arrives(second, first)
    give(first, everybody, OLD)
    assert not arrives(first, second)


@pytest.mark.usefixtures("ipsec")
def test_a_host_that_began_anew_is_understood_with_its_new_epoch(hosts: Hosts) -> None:
    first, second = hosts
    for host in hosts:
        give(host, parties(hosts), OLD)
    for _ in range(5):
        assert arrives(first, second)
    first.inside(lambda: encryption.remove(PORT))
    everybody = [Party(first.address, 2), Party(second.address, 1)]
    for host in hosts:
        give(host, everybody, OLD)
    assert arrives(first, second) and arrives(second, first)


def passes_whole(sender: Host, source: str, receiver: Host, target: str, size: int) -> bool:
    """Whether a datagram that must not be cut into pieces arrives."""

    def bound(address: str) -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER: always
        made.bind((address, 7000))
        made.settimeout(5)
        return made

    with sender.inside(lambda: bound(source)) as mouth, receiver.inside(lambda: bound(target)) as ear:
        mouth.sendto(bytes(size), (target, 7000))
        return len(ear.recv(size + 1)) == size


@pytest.mark.usefixtures("ipsec")
def test_an_overlay_on_the_encrypted_port(hosts: Hosts) -> None:
    everybody = parties(hosts)
    own = ["10.0.9.254", "10.0.9.253"]
    peers = [
        peer for host, address in zip(hosts, own, strict=True) for peer in as_peers([address], address, host.address)
    ]
    for host, address in zip(hosts, own, strict=True):
        give(host, everybody, OLD)
        host.run("ip", "link", "add", "br-x", "type", "bridge")
        host.run("ip", "link", "set", "br-x", "up")
        mtu = overlay.largest_mtu(1500, 4, encrypted=True)
        settings = OverlaySettings("br-x", "vx-x", "husk-test", 4099, PORT, host.address, address, mtu)
        host.inside(partial(overlay.prepare, settings))
        host.inside(partial(overlay.tell, settings, peers))
        host.run("ip", "route", "add", "10.0.9.0/24", "dev", "br-x", "src", address)
    with hosts.listening() as heard:
        assert passes_whole(hosts[0], own[0], hosts[1], own[1], mtu - 28)
    packets = [frame for frame in heard if frame[12:14] == b"\x08\x00"]
    assert {frame[23] for frame in packets} == {50}
    # In one piece, and not much smaller than what fits.
    assert 1508 < max(map(len, packets)) <= 1514
