"""A container that may send any frame it likes changes nothing of the host, and is nobody but itself.

Each attack is real frames from a sandbox's own interface. A packet that is let through, sent after them on the same
way, says that the host has seen them all.
"""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from husk.kernel import namespaces, rtnetlink, sysctl
from husk.kernel.netlink import NetlinkSocket
from husk.network.bridge import BridgeDriver
from husk.network.sandbox import Lease
from tests.support import frames
from tests.support.bridges import TABLE, open_driver, pings, udp_socket, until

POOL6 = "fd11:22:33::/48"
PREFIX = "2001:db8:bad::/64"
VICTIM_PORT = 7777
BROADCAST = "255.255.255.255"


def shown(*command: str) -> str:
    return subprocess.run(["ip", *command], capture_output=True, text=True, check=True).stdout


def _mac(interface: str) -> str:
    with NetlinkSocket() as netlink:
        links = map(rtnetlink.parse_link, netlink.dump(rtnetlink.list_links()))
        return next(link.mac for link in links if link.name == interface)


@contextmanager
def listening(address: str, port: int = VICTIM_PORT) -> Iterator[socket.socket]:
    """A service of the host."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((address, port))
        made.settimeout(5)
        yield made


def send_all(driver: BridgeDriver, attacker: Lease, attack: list[bytes]) -> None:
    """Send frames; afterwards the host has dealt with them."""
    to = _mac(driver.interface)
    with listening(driver.gateway, 7000) as service, frames.raw_socket(attacker.sandbox_path) as raw:
        last = (attacker.ip_address, 1), (driver.gateway, 7000)
        for frame in [*attack, frames.udp(attacker.mac_address, to, *last, b"the end")]:
            raw.send(frame)
        assert service.recv(100) == b"the end"


def heard(service: socket.socket) -> bytes:
    """Return what has come so far."""
    service.setblocking(False)
    with suppress(BlockingIOError):
        return service.recv(1000)
    return b""


@pytest.mark.parametrize("pool6", ["", POOL6], ids=["IPv4 alone", "with IPv6"])
@pytest.mark.parametrize("forwarding", ["0", "1"])
async def test_it_does_not_become_the_hosts_router(settings, pool6, forwarding):
    sysctl.write("net/ipv6/conf/all/forwarding", forwarding)
    driver = await open_driver(settings._replace(pool6=pool6), None, [])
    attacker = await driver.acquire()
    send_all(driver, attacker, [frames.router_advertisement(attacker.mac_address, PREFIX)] * 5)
    assert "default" not in shown("-6", "route")
    assert "2001:db8:bad:" not in shown("-6", "route") + shown("-6", "addr")


@pytest.mark.parametrize("pool6", ["", POOL6], ids=["IPv4 alone", "with IPv6"])
async def test_nothing_of_ours_listens_to_routers_or_redirects(settings, pool6):
    driver = await open_driver(settings._replace(pool6=pool6), None, [])
    lease = await driver.acquire()
    for interface in (driver.interface, lease.host_interface):
        found = {name: sysctl.read(f"net/ipv6/conf/{interface}/{name}") for name in ("accept_ra", "autoconf")}
        found |= {f"v{n}": sysctl.read(f"net/ipv{n}/conf/{interface}/accept_redirects") for n in (4, 6)}
        assert set(found.values()) == {"0"}, (interface, found)


async def test_a_bridge_of_an_earlier_release_forgets_what_it_was_taught(settings):
    earlier = await open_driver(settings._replace(pool6=POOL6), None, [])
    attacker = await earlier.acquire()
    # As releases before this one left it.
    subprocess.run(["nft", "delete", "table", "bridge", TABLE], check=True)
    sysctl.write(f"net/ipv6/conf/{earlier.interface}/accept_ra", "2")
    sysctl.write(f"net/ipv6/conf/{earlier.interface}/autoconf", "1")
    send_all(earlier, attacker, [frames.router_advertisement(attacker.mac_address, PREFIX)])
    assert "default via fe80::666" in shown("-6", "route")

    driver = await open_driver(settings._replace(bip6=f"{earlier.gateway6}/64"), earlier.subnet, [attacker])
    assert "fe80::666" not in shown("-6", "route")
    assert "2001:db8:bad:" not in shown("-6", "route") + shown("-6", "addr")
    assert sysctl.read(f"net/ipv6/conf/{driver.interface}/accept_ra") == "0"
    assert pings(attacker.sandbox_path, driver.gateway6)


async def test_the_host_keeps_its_own_router_when_it_begins_to_forward(settings, outside):
    sysctl.write("net/ipv6/conf/all/forwarding", "0")
    with frames.raw_socket(outside) as raw:
        router = frames.router_advertisement("02:00:00:00:00:01", "2001:db8:1::/64", sender="fe80::1")

        def learned() -> bool:
            raw.send(router)
            return "default via fe80::1 dev uplink" in shown("-6", "route")

        await until(learned)
        inner = "virbr0"
        with NetlinkSocket() as netlink:
            netlink.execute(rtnetlink.add_bridge(inner, "02:00:00:00:00:09"), rtnetlink.set_up(inner))
        await open_driver(settings._replace(pool6=POOL6), None, [])
        assert sysctl.read("net/ipv6/conf/all/forwarding") == "1"
        assert "default via fe80::1 dev uplink" in shown("-6", "route")
        # It goes on listening there, and not where machines inside this host are.
        assert sysctl.read("net/ipv6/conf/uplink/accept_ra") == "2"
        assert sysctl.read(f"net/ipv6/conf/{inner}/accept_ra") == "1"


async def test_a_redirect_of_the_gateway_is_not_believed(settings, outside):
    driver = await open_driver(settings, None, [])
    attacker, victim = await driver.acquire(), await driver.acquire()
    sysctl.write("net/ipv4/conf/all/accept_redirects", "1")
    to = _mac(driver.interface)
    shown("route", "add", "203.0.113.0/24", "via", victim.ip_address)
    assert pings(attacker.sandbox_path, driver.gateway)
    lie = frames.redirect(
        attacker.mac_address,
        to,
        victim.ip_address,
        driver.gateway,
        target="203.0.113.9",
        better=attacker.ip_address,
    )
    # A redirect is for somebody who has sent something.
    with listening(driver.gateway, 9) as service:
        service.connect(("203.0.113.9", 9))
        send_all(driver, attacker, [lie] * 3)
    assert f"via {victim.ip_address}" in shown("route", "get", "203.0.113.9")


@pytest.mark.parametrize("reply", [True, False], ids=["a reply", "a gratuitous request"])
async def test_another_containers_ipv4_address_stays_that_containers(settings, reply):
    driver = await open_driver(settings, None, [])
    attacker, victim = await driver.acquire(), await driver.acquire()
    to = _mac(driver.interface)
    await know(driver, victim)
    lies = [
        frames.arp(attacker.mac_address, victim.ip_address, reply=reply, to=to, target=driver.gateway),
        frames.arp(attacker.mac_address, victim.ip_address, reply=reply),
    ]
    send_all(driver, attacker, lies * 3)
    arrives_at_the_victim(driver, attacker, victim, victim.ip_address)


@pytest.mark.parametrize("solicited", [True, False])
async def test_another_containers_ipv6_address_stays_that_containers(settings, solicited):
    driver = await open_driver(settings._replace(pool6=POOL6), None, [])
    attacker, victim = await driver.acquire(), await driver.acquire()
    to = _mac(driver.interface)
    await know(driver, victim)
    lie = frames.neighbour_advertisement(
        attacker.mac_address, to, victim.ip6_address, driver.gateway6, solicited=solicited
    )
    send_all(driver, attacker, [lie] * 3)
    arrives_at_the_victim(driver, attacker, victim, victim.ip6_address)


async def test_another_containers_mac_stays_that_containers(settings):
    driver = await open_driver(settings, None, [])
    attacker, victim = await driver.acquire(), await driver.acquire()
    to = _mac(driver.interface)
    lie = frames.udp(victim.mac_address, to, (victim.ip_address, 5), (driver.gateway, 5), b"?")
    send_all(driver, attacker, [lie] * 3)
    arrives_at_the_victim(driver, attacker, victim, victim.ip_address)


async def know(driver: BridgeDriver, victim: Lease) -> None:
    """Let the host have heard of the victim before, and let it believe another at once."""
    for version, address in ((4, driver.gateway), (6, driver.gateway6)):
        if address:
            sysctl.write(f"net/ipv{version}/neigh/{driver.interface}/locktime", "0")
            # The kernel takes a moment until an IPv6 address is really there.
            await until(partial(pings, victim.sandbox_path, address, 1))


def arrives_at_the_victim(driver: BridgeDriver, attacker: Lease, victim: Lease, address: str) -> None:
    """Check that packets of the host to the address come to its container, and that the other one sees nothing of
    them."""

    def listen() -> socket.socket:
        return listening_at(address)

    with (
        frames.raw_socket(attacker.sandbox_path) as spy,
        namespaces.run_inside(Path(victim.sandbox_path), listen) as service,
        socket.socket(service.family, socket.SOCK_DGRAM) as host,
    ):
        host.sendto(b"for the victim", (address, VICTIM_PORT))
        assert service.recv(100) == b"for the victim"
        spy.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                assert b"for the victim" not in spy.recv(2000)


def listening_at(address: str) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    made.bind((address, VICTIM_PORT))
    made.settimeout(5)
    return made


async def test_other_containers_keep_their_gateway(settings):
    driver = await open_driver(settings._replace(pool6=POOL6), None, [])
    attacker, victim = await driver.acquire(), await driver.acquire()
    await know(driver, victim)
    lies = [
        frames.arp(attacker.mac_address, driver.gateway, reply=True, to=victim.mac_address, target=victim.ip_address),
        frames.arp(attacker.mac_address, driver.gateway, reply=False),
        frames.neighbour_advertisement(
            attacker.mac_address, victim.mac_address, driver.gateway6, victim.ip6_address, solicited=True
        ),
    ]
    with frames.raw_socket(attacker.sandbox_path) as raw:
        for lie in lies * 3:
            raw.send(lie)

        def known() -> str:
            return shown("neigh")

        await until(lambda: pings(victim.sandbox_path, driver.gateway6, seconds=1))
        for gateway in (driver.gateway, driver.gateway6):
            line = next(
                line
                for line in namespaces.run_inside(Path(victim.sandbox_path), known).splitlines()
                if line.startswith(gateway + " ")
            )
            assert _mac(driver.interface) in line and "PERMANENT" in line


async def test_the_host_forgets_who_has_gone(settings):
    driver = await open_driver(settings._replace(pool6=POOL6), None, [])
    kept, gone = await driver.acquire(), await driver.acquire()
    assert shown("neigh").count("PERMANENT") == 4
    driver.release(gone)
    await until(lambda: gone.ip_address not in shown("neigh") and gone.ip6_address not in shown("neigh"))
    lost = await driver.acquire()
    assert lost.mac_address in shown("neigh")
    await open_driver(settings._replace(pool6=POOL6), driver.subnet, [kept])
    assert lost.mac_address not in shown("neigh")
    assert shown("neigh").count(kept.mac_address) == 2


@pytest.mark.parametrize("sender", ["127.0.0.1", "127.7.7.7", "198.51.100.1", "198.51.100.77", "203.0.113.5"])
async def test_it_cannot_send_from_addresses_that_are_not_its_own(settings, outside, sender):
    """Neither the host's nor those of machines elsewhere: many a service trusts these."""
    for interface in ("all", "default"):
        sysctl.write(f"net/ipv4/conf/{interface}/rp_filter", "0")
    driver = await open_driver(settings, None, [])
    attacker = await driver.acquire()
    with listening(driver.gateway) as service:
        lie = frames.udp(
            attacker.mac_address, _mac(driver.interface), (sender, 9), (driver.gateway, VICTIM_PORT), b"trust me"
        )
        send_all(driver, attacker, [lie])
        assert heard(service) == b""


@pytest.mark.parametrize("sender", ["::1", "fd11:22:33::1", "2001:db8:5::1", "2001:db8:5::77"])
async def test_nor_from_ipv6_addresses(settings, outside, sender):
    shown("addr", "add", "2001:db8:5::1/64", "dev", "uplink", "nodad")
    driver = await open_driver(settings._replace(bip6="fd11:22:33::1/64"), None, [])
    attacker = await driver.acquire()
    with listening(driver.gateway6) as service:
        target = (driver.gateway6, VICTIM_PORT)
        to = _mac(driver.interface)
        send_all(driver, attacker, [frames.udp(attacker.mac_address, to, (sender, 9), target, b"trust me")])
        assert heard(service) == b""
        truth = frames.udp(attacker.mac_address, to, (attacker.ip6_address, 9), target, b"mine")
        send_all(driver, attacker, [truth])
        service.settimeout(5)
        assert service.recv(100) == b"mine"


@pytest.mark.parametrize("raw", [True, False], ids=["from raw frames", "from a socket"])
async def test_it_is_no_dhcp_server_of_the_host(settings, raw):
    """A client on the bridge, as some hosts start on every interface, hears nothing, however it listens."""
    driver = await open_driver(settings._replace(pool6=POOL6), None, [])
    attacker = await driver.acquire()
    to = _mac(driver.interface)
    offers = [
        frames.udp(attacker.mac_address, to, (attacker.ip_address, 67), (driver.gateway, 68), b"offer"),
        frames.udp(attacker.mac_address, frames.EVERYBODY, (attacker.ip_address, 67), (BROADCAST, 68), b"offer"),
        frames.udp(attacker.mac_address, to, (attacker.ip6_address, 547), (driver.gateway6, 546), b"offer"),
    ]
    if raw:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as client:
            client.bind((driver.interface, 3))
            send_all(driver, attacker, offers)
            client.setblocking(False)
            seen = []
            with suppress(BlockingIOError):
                while True:
                    seen.append(client.recv(2000))
        assert any(b"the end" in frame for frame in seen)
        assert not any(b"offer" in frame for frame in seen)
        return
    with listening("0.0.0.0", 68) as client, listening("::", 546) as client6:
        send_all(driver, attacker, offers)
        assert heard(client) == heard(client6) == b""


async def test_containers_may_still_serve_each_other_dhcp(settings):
    driver = await open_driver(settings, None, [])
    server, client = await driver.acquire(), await driver.acquire()
    with udp_socket(client.sandbox_path, client.ip_address, 68) as service:
        with frames.raw_socket(server.sandbox_path) as raw:
            to = client.mac_address, (server.ip_address, 67), (client.ip_address, 68)
            raw.send(frames.udp(server.mac_address, *to, b"offer"))
        assert service.recv(100) == b"offer"


async def test_a_container_without_a_bridge_is_no_router_either(settings):
    """The deletion of a bridge leaves its ports to the host."""
    driver = await open_driver(settings, None, [])
    attacker = await driver.acquire()
    with NetlinkSocket() as netlink:
        netlink.execute(rtnetlink.delete_link(settings.interface))
    with frames.raw_socket(attacker.sandbox_path) as raw:
        for _ in range(5):
            raw.send(frames.router_advertisement(attacker.mac_address, PREFIX))
    assert "bad" not in shown("-6", "route") and "default" not in shown("-6", "route")
    assert sysctl.read(f"net/ipv6/conf/{attacker.host_interface}/disable_ipv6") == "1"
