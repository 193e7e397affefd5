"""Overlay networks over hosts that are network namespaces: what arrives, what does not, and what is on the wire."""

import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from husk.errors import InvalidParameter, SystemFault
from husk.kernel.netlink import NetlinkSocket
from husk.network import overlay
from husk.network.peers import OverlayPeer, Tables, wanted
from husk.swarm.model.settings import DATA_PATH_PORT
from tests.support.bridges import pings, udp_socket
from tests.support.hosts import Hosts
from tests.support.overlays import Connection, Endpoint, OverlayNetwork, echo

_IP_MTU_DISCOVER, _IP_PMTUDISC_DO = 10, 2
_VXLAN = 8 + 14 + 20 + 8


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with Hosts(3) as hosts:
        yield hosts


@pytest.fixture
def net(tmp_path: Path) -> OverlayNetwork:
    return OverlayNetwork(tmp_path, 4097)


@pytest.fixture
def pair(hosts: Hosts, net: OverlayNetwork) -> tuple[Endpoint, Endpoint]:
    """Two endpoints on two hosts that know of each other."""
    found = net.endpoint(hosts[0], "10.0.9.5"), net.endpoint(hosts[1], "10.0.9.6")
    net.tell()
    return found


def carried(frames: list[bytes]) -> list[bytes]:
    """Of frames on the wire, those that VXLAN carries inside."""
    plain = [frame for frame in frames if frame[12:14] == b"\x08\x00" and frame[23] == 17]
    return [frame[_VXLAN:] for frame in plain if struct.unpack("!H", frame[36:38])[0] == DATA_PATH_PORT]


def test_containers_reach_each_other_across_hosts(pair: tuple[Endpoint, Endpoint], hosts: Hosts) -> None:
    here, there = pair
    with hosts.listening() as heard:
        assert pings(here.sandbox, there.address)
        with echo(there.inside, 7000, "there"), Connection(here.inside, there.address, 7000) as connection:
            assert (connection.word, connection.seen_at) == ("there", here.address)
            assert connection.says(bytes(1 << 20))
    inside = carried(heard)
    assert inside
    # Who has which address was asked of nobody beyond the host.
    assert {frame[12:14] for frame in inside} == {b"\x08\x00"}


def test_a_change_costs_no_look_at_all_peers_and_what_another_takes_away_comes_back(
    hosts: Hosts, net: OverlayNetwork, pair: tuple[Endpoint, Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, peers = net.settings(hosts[0]), net.peers()
    told: overlay.ToldPeers | None = None

    def tell() -> int:
        nonlocal told
        told, count = hosts[0].inside(lambda: overlay.tell(settings, peers, told))
        return count

    def refused(*_: object) -> Tables:
        raise AssertionError("nobody has to look")

    assert tell() == 0 and told is not None
    with monkeypatch.context() as patched:
        patched.setattr(overlay, "look", refused)
        peers.append(OverlayPeer("10.0.9.77", "02:42:0a:00:09:4d", hosts[1].address))
        assert [tell(), tell()] == [3, 0]
        peers.pop()
        assert tell() == 3
    bridge = settings.bridge
    hosts[0].run("ip", "neigh", "del", "10.0.9.6", "dev", bridge)
    assert tell() == 0 and not pings(pair[0].sandbox, "10.0.9.6")
    monkeypatch.setattr(overlay, "LOOK_AGAIN", 0.0)
    assert tell() == 1 and pings(pair[0].sandbox, "10.0.9.6")
    # A change that finds something gone is followed by a look.
    monkeypatch.setattr(overlay, "LOOK_AGAIN", 1000.0)
    hosts[0].run("ip", "neigh", "flush", "dev", bridge, "nud", "permanent")
    peers = [peer for peer in peers if peer.address != "10.0.9.6"]
    assert tell() == 3 and told is None
    assert tell() > 0 and tell() == 0
    assert hosts[0].inside(lambda: look(settings)) == wanted(peers, settings.local)


def look(settings: overlay.OverlaySettings) -> Tables:
    with NetlinkSocket() as netlink:
        bridge, vxlan = socket.if_nametoindex(settings.bridge), socket.if_nametoindex(settings.interface)
        return overlay.look(netlink, bridge, vxlan)


def test_hosts_whose_own_network_is_ipv6(tmp_path: Path, hosts: Hosts) -> None:
    net = OverlayNetwork(tmp_path, 4098, underlay6=True)
    here, there = net.endpoint(hosts[0], "10.0.9.5"), net.endpoint(hosts[1], "10.0.9.6")
    net.tell()
    assert pings(here.sandbox, there.address)
    assert net.mtu(hosts[0]) == 1500 - 70


def test_ipv6_on_the_network(tmp_path: Path, hosts: Hosts) -> None:
    net = OverlayNetwork(tmp_path, 4098, subnet6="fd00:9::/64")
    here, there = net.endpoint(hosts[0], "10.0.9.5"), net.endpoint(hosts[1], "10.0.9.6")
    net.tell()
    with hosts.listening() as heard:
        assert pings(here.sandbox, there.lease.ip6_address)
        assert pings(here.sandbox, net.own6(hosts[1]))
    inside = carried(heard)
    assert inside
    # No question for a neighbour (135) has left the host, of IPv6 as little as of IPv4.
    assert not [frame for frame in inside if frame[12:14] == b"\x86\xdd" and frame[20] == 58 and frame[54] == 135]
    assert net.tell() == [0, 0]


def test_containers_leave_the_network_on_their_own_host(pair: tuple[Endpoint, Endpoint], hosts: Hosts) -> None:
    """They have the same gateway on each host, and are seen outside with the address of theirs."""
    outside = hosts[2]
    with echo(outside.inside, 7000):
        for endpoint in pair:
            with Connection(endpoint.inside, outside.address, 7000) as connection:
                assert connection.seen_at == endpoint.host.address


def test_an_internal_network_leads_to_its_own_alone(tmp_path: Path, hosts: Hosts) -> None:
    net = OverlayNetwork(tmp_path, 4098, internal=True)
    here, there = net.endpoint(hosts[0], "10.0.9.5"), net.endpoint(hosts[1], "10.0.9.6")
    net.tell()
    assert pings(here.sandbox, there.address)
    assert not pings(here.sandbox, hosts[2].address, 1)


def test_nothing_is_sent_to_those_whom_nobody_told_of(hosts: Hosts, net: OverlayNetwork) -> None:
    here, there = net.endpoint(hosts[0], "10.0.9.5"), net.endpoint(hosts[1], "10.0.9.6")
    with hosts.listening() as heard:
        assert not pings(here.sandbox, there.address, 1)
    assert not carried(heard)


def test_two_networks_with_one_subnet_are_two(tmp_path: Path, hosts: Hosts) -> None:
    first, second = OverlayNetwork(tmp_path, 5001), OverlayNetwork(tmp_path, 5002)
    pairs = [(net.endpoint(hosts[0], "10.0.9.5"), net.endpoint(hosts[1], "10.0.9.6")) for net in (first, second)]
    first.tell()
    second.tell()
    (_, one), (_, two) = pairs
    with echo(one.inside, 7000, "one"), echo(two.inside, 7000, "two"):
        for (here, there), word in zip(pairs, ("one", "two"), strict=True):
            with Connection(here.inside, there.address, 7000) as connection:
                assert connection.word == word


def test_a_packet_of_the_largest_size_goes_in_one_piece(pair: tuple[Endpoint, Endpoint], hosts: Hosts) -> None:
    here, there = pair
    sender, receiver = udp_socket(here.sandbox, here.address), udp_socket(there.sandbox, there.address, 7000)
    with sender, receiver, hosts.listening() as heard:
        sender.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _IP_PMTUDISC_DO)
        sender.sendto(bytes(1450 - 28), (there.address, 7000))
        assert len(receiver.recv(2000)) == 1450 - 28
        with pytest.raises(OSError, match="Message too long"):
            sender.sendto(bytes(1451 - 28), (there.address, 7000))
    assert max(map(len, heard)) == 1514


def test_an_endpoint_that_moves_to_another_host(pair: tuple[Endpoint, Endpoint], hosts: Hosts, net) -> None:
    here, there = pair
    assert pings(here.sandbox, there.address)
    net.remove(there)
    moved = net.endpoint(hosts[2], there.address)
    assert (moved.lease.mac_address, moved.host) == (there.lease.mac_address, hosts[2])
    net.tell()
    with hosts.listening() as heard:
        assert pings(here.sandbox, there.address)
    assert {frame[30:34] for frame in heard if frame[12:14] == b"\x08\x00"} == {
        socket.inet_aton(hosts[0].address),
        socket.inet_aton(hosts[2].address),
    }
    # To the host on the other side of the network, and to this one.
    net.remove(moved)
    beside = net.endpoint(hosts[0], there.address)
    net.tell()
    assert pings(here.sandbox, beside.address)
    assert net.tell() == [0, 0, 0]


def test_connections_survive_the_daemon_and_its_restart(pair: tuple[Endpoint, Endpoint], hosts: Hosts, net) -> None:
    here, there = pair
    # No daemon runs now: between two steps of this test nothing of one is left.
    with echo(there.inside, 7000), Connection(here.inside, there.address, 7000, 20) as connection:
        assert connection.says(b"before")
        index = hosts[0].inside(lambda: socket.if_nametoindex(net.interface))
        for host in hosts[:2]:
            net.open(host)
        assert connection.says(bytes(1 << 18))
        assert net.tell() == [0, 0]
        assert hosts[0].inside(lambda: socket.if_nametoindex(net.interface)) == index
        assert connection.says(b"after")


@pytest.mark.parametrize(
    "damage",
    [
        "bridge fdb del {mac} dev {vx} self",
        "bridge fdb del {mac} dev {vx} master",
        "ip neigh del 10.0.9.6 dev {br}",
        "ip link del {vx}",
        "ip link set {vx} nomaster",
        "ip link set {vx} down",
    ],
)
def test_what_somebody_has_broken_is_corrected(damage: str, pair: tuple[Endpoint, Endpoint], hosts: Hosts, net) -> None:
    here, there = pair
    hosts[0].run(*damage.format(mac=there.lease.mac_address, vx=net.interface, br=net.bridge).split())
    net.open(hosts[0])
    net.tell()
    assert pings(here.sandbox, there.address)
    assert net.tell() == [0, 0]


def test_an_interface_with_another_number_is_replaced(hosts: Hosts, net: OverlayNetwork) -> None:
    net.open(hosts[0])
    other = msgspec.structs.replace(net.settings(hosts[0]), vni=77)
    hosts[0].inside(lambda: overlay.prepare(other))
    assert "vxlan id 77 " in hosts[0].run("ip", "-d", "link", "show", net.interface)


def test_an_interface_of_somebody_else_is_left_alone(hosts: Hosts, net: OverlayNetwork) -> None:
    net.open(hosts[0])
    hosts[0].run("ip", "link", "del", net.interface)
    hosts[0].run("ip", "link", "add", net.interface, "type", "veth")
    with pytest.raises(SystemFault, match="not of this daemon"):
        net.open(hosts[0])
    hosts[0].run("ip", "link", "del", net.interface)


def test_two_networks_with_one_number_are_refused(hosts: Hosts, net: OverlayNetwork) -> None:
    net.open(hosts[0])
    second = msgspec.structs.replace(net.settings(hosts[0]), interface="vx-second")
    with pytest.raises(SystemFault, match="cannot be set up"):
        hosts[0].inside(lambda: overlay.prepare(second))
    assert "vx-second" not in hosts[0].links()


def test_a_port_that_somebody_else_has_is_named_and_used_when_it_is_free(hosts: Hosts, net: OverlayNetwork) -> None:
    def take() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind(("", net.port))
        return made

    with hosts[0].inside(take), pytest.raises(SystemFault, match=f"UDP port {net.port} is taken on this host"):
        net.open(hosts[0])
    net.open(hosts[0])
    assert "state UNKNOWN" in hosts[0].run("ip", "link", "show", "up", "dev", net.interface)


def test_running_containers_get_the_networks_mtu(hosts: Hosts, net: OverlayNetwork) -> None:
    here = net.endpoint(hosts[0], "10.0.9.5")

    def mtu() -> tuple[str, str]:
        inner = here.inside(lambda: subprocess.check_output(["ip", "link", "show", "eth0"], text=True))
        return inner, hosts[0].run("ip", "link", "show", here.lease.host_interface)

    hosts[0].inside(lambda: overlay.fit([here.lease], 1400))
    assert all(" mtu 1400 " in text for text in mtu())
    net.open(hosts[0])
    assert all(" mtu 1450 " in text for text in mtu())
    gone = Endpoint(hosts[0], here.lease)
    net.remove(here)
    hosts[0].inside(lambda: overlay.fit([gone.lease], 1400))


def test_a_network_that_ends_leaves_nothing(hosts: Hosts, net: OverlayNetwork) -> None:
    net.endpoint(hosts[0], "10.0.9.5")
    net.endpoint(hosts[1], "10.0.9.6")
    net.tell()
    net.close(hosts[0])
    assert hosts[0].left() == []
    hosts[0].inside(lambda: overlay._remove(net.settings(hosts[0])))


def test_the_own_network_of_hosts_must_be_theirs(hosts: Hosts) -> None:
    with pytest.raises(InvalidParameter, match=r"192\.0\.2\.99 is no address of this host"):
        hosts[0].inside(lambda: overlay.underlay_mtu("192.0.2.99"))


def test_cut_links_lose_frames_one_way_or_both_ways(hosts: Hosts) -> None:
    def reaches(sender: int, receiver: int) -> bool:
        """Tell if a datagram arrives; answers are not needed."""
        ear = hosts[receiver].inside(lambda: _bound(hosts[receiver].address))
        mouth = hosts[sender].inside(lambda: _bound(hosts[sender].address, 0))
        with ear, mouth:
            mouth.sendto(b"!", (hosts[receiver].address, 7001))
            try:
                return ear.recv(10) == b"!"
            except TimeoutError:
                return False

    for sender, receiver in ((0, 1), (1, 0), (0, 2)):
        assert reaches(sender, receiver)
    hosts.cut(hosts[0], hosts[1])
    assert not reaches(0, 1)
    assert reaches(1, 0) and reaches(0, 2)
    hosts.isolate(hosts[2])
    assert not reaches(2, 1) and not reaches(0, 2)
    hosts.mend()
    assert reaches(0, 1) and reaches(0, 2)
    hosts.divide(hosts[:1], hosts[1:])
    assert not reaches(0, 2) and reaches(1, 2)


def _bound(address: str, port: int = 7001) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind((address, port))
    made.settimeout(0.3 if port else 5)
    return made
