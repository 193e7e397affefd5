"""Containers on a bridge reach what they should and nothing else; a crash leaves nothing that the next start keeps."""

import asyncio
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import IPv4Interface, IPv6Interface
from pathlib import Path

import pytest

from husk.config import AddressPool
from husk.errors import Forbidden, InvalidParameter, SystemFault, Unavailable
from husk.kernel import namespaces, rtnetlink, sysctl
from husk.kernel.netlink import NetlinkSocket
from husk.kernel.nftables import Nftables
from husk.network import sandbox
from husk.network.bridge import BridgeDriver, Wish
from husk.network.firewall import Firewall
from husk.network.ground import BridgeSettings, Opening
from husk.network.sandbox import Lease

# Addresses that are reserved for documentation: nothing real is ever reached.
HOST_OUTSIDE = IPv4Interface("198.51.100.1/24")
OUTSIDE = IPv4Interface("198.51.100.2/24")
TABLE = "husk-test"


@pytest.fixture
def settings(tmp_path: Path) -> BridgeSettings:
    return BridgeSettings("hk-test-0", TABLE, tmp_path / "netns", warm=0)


async def open_driver(settings: BridgeSettings, subnet: str | None, leases: list[Lease]) -> BridgeDriver:
    """As the engine does it at its start, with one network."""
    if settings.netns_dir.exists():
        sandbox.sweep(settings.netns_dir, [lease.sandbox_path for lease in leases])
    firewall = Firewall(settings.owner)
    driver = await BridgeDriver.open(settings, subnet, leases, firewall)
    firewall.apply()
    return driver


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A machine beyond the host that knows the host and no container."""
    path = tmp_path / "outside"
    with NetlinkSocket() as host:

        def connect(namespace: int) -> None:
            host.execute(rtnetlink.add_veth("uplink", "eth0", peer_namespace=namespace, mtu=1400))
            with NetlinkSocket() as inside:
                inside.execute(rtnetlink.add_address(socket.if_nametoindex("eth0"), OUTSIDE), rtnetlink.set_up("eth0"))

        namespaces.create(path, connect)
        host.execute(rtnetlink.add_address(socket.if_nametoindex("uplink"), HOST_OUTSIDE), rtnetlink.set_up("uplink"))
    return path


def run_inside(sandbox: str | Path, *command: str) -> str:
    """What a busybox command says inside the sandbox."""
    arguments = ["nsenter", f"--net={sandbox}", "busybox", *command]
    return subprocess.run(arguments, capture_output=True, text=True, check=True).stdout


def pings(sandbox: str | Path, address: str, seconds: int = 5) -> bool:
    """Whether an answer comes; longer than the second after which the kernel asks again for a neighbour's MAC."""
    try:
        run_inside(sandbox, "ping", "-c", "1", "-W", str(seconds), address)
    except subprocess.CalledProcessError:
        return False
    return True


@contextmanager
def process_inside(sandbox: str) -> Iterator[None]:
    """A process that stays in the sandbox's namespace."""
    # Its output says that it has arrived there.
    command = ["nsenter", f"--net={sandbox}", "busybox", "sh", "-c", "echo here; exec sleep 60"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


def udp_socket(sandbox: str | Path, address: str, port: int = 0) -> socket.socket:
    """A socket that lives in the sandbox, used from here."""

    def make() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind((address, port))
        made.settimeout(5)
        return made

    return namespaces.run_inside(Path(sandbox), make)


def links() -> set[str]:
    return {name for _, name in socket.if_nameindex()}


def veths() -> set[str]:
    return {name for name in links() if name.startswith("veth")}


def sandboxes(settings: BridgeSettings) -> set[str]:
    return {str(path) for path in settings.netns_dir.iterdir()}


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        await asyncio.sleep(0.01)


async def test_containers_reach_each_other_and_the_gateway(settings):
    driver = await open_driver(settings, None, [])
    one, other = await driver.acquire(), await driver.acquire()
    assert (one.ip_address, other.ip_address) == ("172.17.0.2", "172.17.0.3")
    assert pings(one.sandbox_path, one.ip_address)
    assert pings(one.sandbox_path, "127.0.0.1")
    assert pings(one.sandbox_path, other.ip_address)
    assert pings(other.sandbox_path, driver.gateway)


async def test_the_sandbox_is_as_the_lease_says(settings):
    driver = await open_driver(settings, None, [])
    lease = await driver.acquire()

    assert f"link/ether {lease.mac_address}" in run_inside(lease.sandbox_path, "ip", "link", "show", "eth0")
    assert f"inet {lease.ip_address}/{lease.prefix_len}" in run_inside(lease.sandbox_path, "ip", "addr", "show", "eth0")
    assert "127.0.0.1/8" in run_inside(lease.sandbox_path, "ip", "addr", "show", "lo")
    assert f"default via {lease.gateway} dev eth0" in run_inside(lease.sandbox_path, "ip", "route")
    assert "inet6" not in run_inside(lease.sandbox_path, "ip", "addr", "show", "eth0")
    assert lease.gateway == driver.gateway


async def test_a_container_may_ping_and_listen_on_low_ports_as_any_user(settings):
    driver = await open_driver(settings, None, [])
    lease = await driver.acquire()

    def read(name: str) -> list[str]:
        return namespaces.run_inside(Path(lease.sandbox_path), lambda: sysctl.read(name)).split()

    assert read("net/ipv4/ip_unprivileged_port_start") == ["0"]
    assert read("net/ipv4/ping_group_range") == ["0", "2147483647"]


async def test_the_outside_sees_the_hosts_address(settings, outside):
    driver = await open_driver(settings, None, [])
    lease = await driver.acquire()
    assert pings(lease.sandbox_path, str(OUTSIDE.ip))
    with udp_socket(outside, str(OUTSIDE.ip), 5000) as server, udp_socket(lease.sandbox_path, "0.0.0.0") as client:
        client.sendto(b"question", (str(OUTSIDE.ip), 5000))
        data, sender = server.recvfrom(100)
        assert (data, sender[0]) == (b"question", str(HOST_OUTSIDE.ip))
        server.sendto(b"answer", sender)
        assert client.recv(100) == b"answer"


async def test_the_outside_cannot_begin_a_conversation_with_a_container(settings, outside):
    driver = await open_driver(settings, None, [])
    lease = await driver.acquire()
    run_inside(outside, "ip", "route", "add", driver.subnet, "via", str(HOST_OUTSIDE.ip))
    assert pings(outside, driver.gateway)
    assert not pings(outside, lease.ip_address, seconds=1)


async def test_two_drivers_live_side_by_side(settings, tmp_path):
    other_settings = BridgeSettings("hk-other-0", "husk-other", tmp_path / "other", warm=1)
    driver, other = await asyncio.gather(open_driver(settings, None, []), open_driver(other_settings, None, []))
    assert {driver.subnet, other.subnet} == {"172.17.0.0/16", "172.18.0.0/16"}
    here, there = await driver.acquire(), await other.acquire()
    assert not pings(here.sandbox_path, there.ip_address, seconds=1)
    assert not pings(there.sandbox_path, here.ip_address, seconds=1)
    await driver.release(here)
    await driver.close(remove=True)
    assert pings(there.sandbox_path, other.gateway)
    assert "husk-other" in Nftables().run("list tables")
    await other.release(there)
    await other.close(remove=True)


async def test_after_a_crash_only_leases_in_use_remain(settings):
    crashed = await open_driver(settings._replace(warm=3), None, [])
    kept, lost = await crashed.acquire(), await crashed.acquire()
    await until(lambda: crashed.warm == 3)
    assert len(veths()) == 5

    driver = await open_driver(settings, crashed.subnet, [kept])
    assert driver.subnet == crashed.subnet
    assert sandboxes(settings) == {kept.sandbox_path}
    await until(lambda: veths() == {kept.host_interface})
    assert pings(kept.sandbox_path, driver.gateway)
    fresh = await driver.acquire()
    assert fresh.ip_address not in (kept.ip_address, driver.gateway)
    assert pings(fresh.sandbox_path, kept.ip_address)
    await driver.release(lost)
    await driver.release(kept)
    assert sandboxes(settings) == {fresh.sandbox_path}


async def test_a_veth_whose_namespace_a_process_keeps_alive_is_swept_too(settings):
    crashed = await open_driver(settings, None, [])
    lease = await crashed.acquire()
    with process_inside(lease.sandbox_path):
        await open_driver(settings, None, [])
        assert lease.host_interface not in links()


async def test_a_deleted_bridge_is_repaired_with_its_ports(settings):
    crashed = await open_driver(settings, None, [])
    lease = await crashed.acquire()
    with NetlinkSocket() as netlink:
        netlink.execute(rtnetlink.delete_link(settings.interface))
    sysctl.write("net/ipv4/ip_forward", "0")
    Nftables().run(f"delete table ip {TABLE}")
    assert not pings(lease.sandbox_path, crashed.gateway, seconds=1)

    driver = await open_driver(settings, crashed.subnet, [lease])
    assert pings(lease.sandbox_path, driver.gateway)
    assert sysctl.read("net/ipv4/ip_forward") == "1"
    assert TABLE in Nftables().run("list tables")


async def test_releasing_twice_does_not_free_the_successors_address(settings):
    driver = await open_driver(settings, None, [])
    first = await driver.acquire()
    await driver.release(first)
    await driver.release(first)
    await until(lambda: first.host_interface not in links())
    successor: Lease | None = None

    async def reused() -> Lease:
        while True:
            lease = await driver.acquire()
            if lease.ip_address == first.ip_address:
                return lease
            await driver.release(lease)

    successor = await asyncio.wait_for(reused(), 10)
    await driver.release(first)
    await driver.close(remove=False)
    assert successor.host_interface in links()
    assert driver._owners[first.ip_address] == successor.host_interface


async def test_releasing_frees_the_address_though_a_process_lingers(settings):
    driver = await open_driver(settings, None, [])
    lease = await driver.acquire()
    with process_inside(lease.sandbox_path):
        await driver.release(lease)
        await until(lambda: lease.host_interface not in links())


async def test_closing_with_remove_leaves_nothing(settings):
    before = links()
    driver = await open_driver(settings._replace(warm=3), None, [])
    lease = await driver.acquire()
    await driver.release(lease)
    await driver.close(remove=True)
    assert links() == before
    assert sandboxes(settings) == set()
    assert settings.interface not in Nftables().run("list ruleset")


async def test_closing_without_remove_keeps_what_containers_use(settings, outside):
    driver = await open_driver(settings._replace(warm=2), None, [])
    lease = await driver.acquire()
    await driver.close(remove=False)
    assert sandboxes(settings) == {lease.sandbox_path}
    assert veths() == {lease.host_interface}
    assert pings(lease.sandbox_path, str(OUTSIDE.ip))
    with pytest.raises(Unavailable):
        await driver.acquire()


async def test_the_warm_pool_fills_up_again(settings):
    driver = await open_driver(settings._replace(warm=2), None, [])
    await until(lambda: driver.warm == 2)
    leases = [await driver.acquire() for _ in range(3)]
    await until(lambda: driver.warm == 2)
    assert len({lease.ip_address for lease in leases}) == 3
    assert len(sandboxes(settings)) == 5


async def test_an_acquire_that_is_cancelled_leaves_nothing_behind(settings):
    driver = await open_driver(settings, None, [])
    waiting = asyncio.gather(*(driver.acquire() for _ in range(3)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await driver.close(remove=False)
    assert sandboxes(settings) == set()
    assert veths() == set()


async def test_many_at_once_get_different_addresses(settings):
    driver = await open_driver(settings._replace(warm=2), None, [])
    leases = await asyncio.gather(*(driver.acquire() for _ in range(20)))
    assert len({lease.ip_address for lease in leases}) == 20
    assert pings(leases[0].sandbox_path, leases[-1].ip_address)
    await asyncio.gather(*(driver.release(lease) for lease in leases))
    await driver.close(remove=True)
    assert veths() == set()


async def test_a_warm_sandbox_that_is_taken_while_room_is_made_for_its_address_is_in_use(settings):
    driver = await open_driver(settings._replace(pool6="fd11:22:33::/48", warm=2), None, [])
    await until(lambda: driver.warm == 2)
    base = driver.gateway.rpartition(".")[0]
    # An address of each of the two: the second one is gone when the first has made room.
    wish = Wish(address=f"{base}.2", address6="fd11:22:33::3")
    refused, taken = await asyncio.gather(driver.acquire(wish), driver.acquire(), return_exceptions=True)
    assert isinstance(refused, Forbidden) and refused.message == "Address already in use"
    assert isinstance(taken, Lease) and taken.ip6_address == "fd11:22:33::3"


async def test_room_that_is_made_for_an_address_is_for_nobody_else(settings, monkeypatch):
    driver = await open_driver(settings._replace(warm=1), None, [])
    await until(lambda: driver.warm == 1)
    wanted = driver.gateway.rpartition(".")[0] + ".2"
    free = driver._free

    def free_and_fill(lease: Lease) -> None:
        free(lease)
        driver._refill()  # as another one's acquire does, which may end at any moment

    monkeypatch.setattr(driver, "_free", free_and_fill)
    assert (await driver.acquire(Wish(address=wanted))).ip_address == wanted


async def test_a_full_subnet_says_so_and_recovers(settings):
    driver = await open_driver(settings._replace(pools=(AddressPool("10.9.0.0/30", 30),), warm=2), None, [])
    lease = await driver.acquire()
    with pytest.raises(Unavailable, match="no available IPv4 addresses"):
        await driver.acquire()
    await driver.release(lease)
    assert (await driver.acquire()).ip_address == lease.ip_address


async def test_bip_sets_gateway_and_subnet_and_replaces_the_old_address(settings):
    await (await open_driver(settings, None, [])).close(remove=False)
    driver = await open_driver(settings._replace(bip="10.7.0.9/24"), "172.17.0.0/16", [])
    assert (driver.gateway, driver.subnet) == ("10.7.0.9", "10.7.0.0/24")
    lease = await driver.acquire()
    assert (lease.ip_address, lease.prefix_len) == ("10.7.0.1", 24)
    assert pings(lease.sandbox_path, "10.7.0.9")
    with NetlinkSocket() as netlink:
        addresses = [rtnetlink.parse_address(payload) for payload in netlink.dump(rtnetlink.list_addresses())]
    assert [str(entry.interface) for entry in addresses] == ["127.0.0.1/8", "10.7.0.9/24"]


async def test_containers_send_no_larger_packets_than_the_uplink_takes(settings, outside):
    with NetlinkSocket() as netlink:
        netlink.execute(rtnetlink.add_default_route(OUTSIDE.ip))
    driver = await open_driver(settings, None, [])
    lease = await driver.acquire()
    with NetlinkSocket() as netlink:
        found = {link.name: link.mtu for link in map(rtnetlink.parse_link, netlink.dump(rtnetlink.list_links()))}
    assert found[lease.host_interface] == 1400
    assert found[settings.interface] == 1400


async def test_an_interface_that_is_no_bridge_is_left_alone(settings):
    with NetlinkSocket() as netlink:
        netlink.execute(rtnetlink.add_veth(settings.interface, "peer"))
    with pytest.raises(SystemFault, match="is no bridge"):
        await open_driver(settings, None, [])
    assert {settings.interface, "peer"} <= links()


async def test_a_bridge_of_the_administrator_is_used_but_never_deleted(settings):
    with NetlinkSocket() as netlink:
        netlink.execute(
            rtnetlink.add_bridge(settings.interface, "02:00:00:00:00:01"), rtnetlink.add_veth("port0", "machine")
        )
        index = socket.if_nametoindex(settings.interface)
        netlink.execute(
            rtnetlink.add_address(index, IPv4Interface("10.3.0.7/24")), rtnetlink.set_master("port0", index)
        )
    driver = await open_driver(settings, None, [])
    assert (driver.gateway, driver.subnet) == ("10.3.0.7", "10.3.0.0/24")
    await driver.close(remove=True)
    assert {settings.interface, "port0"} <= links()


async def test_an_endpoint_has_an_ipv6_address_too(settings):
    driver = await open_driver(settings._replace(pool6="fd11:22:33::/48"), None, [])
    assert (driver.subnet6, driver.gateway6) == ("fd11:22:33::/64", "fd11:22:33::1")
    one, other = await driver.acquire(), await driver.acquire(Wish(address6="fd11:22:33::99"))
    assert (one.ip6_address, other.ip6_address) == ("fd11:22:33::2", "fd11:22:33::99")
    assert pings(one.sandbox_path, other.ip6_address)
    assert pings(one.sandbox_path, driver.gateway6)
    await driver.release(other)
    again = await driver.acquire(Wish(address6="fd11:22:33::99"))
    assert again.ip6_address == "fd11:22:33::99"
    await asyncio.gather(driver.release(one), driver.release(again))
    await driver.close(remove=True)
    assert veths() == set()


async def test_the_next_network_gets_the_next_ipv6_subnet(settings, tmp_path):
    driver = await open_driver(settings._replace(pool6="fd11:22:33::/48"), None, [])
    other = await open_driver(settings._replace(interface="hk-next-0", pool6="fd11:22:33::/48"), None, [])
    assert (driver.subnet6, other.subnet6) == ("fd11:22:33::/64", "fd11:22:33:1::/64")


async def test_an_interface_gets_its_name_and_settings(settings):
    driver = await open_driver(settings, None, [])
    sysctls = (("net/ipv4/conf/IFNAME/log_martians", "1"),)
    lease = await driver.acquire(Wish(name="lan7", sysctls=sysctls))
    assert lease.interface == "lan7"
    read = ["busybox", "cat", "/proc/sys/net/ipv4/conf/lan7/log_martians"]
    command = ["nsenter", f"--net={lease.sandbox_path}", "unshare", "-m", *read]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "1\n"


async def test_many_networks_are_opened_at_once(settings):
    firewall = Firewall(TABLE)
    openings = [Opening(settings._replace(interface=f"hk-{n}", bip=f"10.9.{n}.1/24"), None, []) for n in range(30)]
    drivers = await BridgeDriver.open_all(openings, firewall)
    await asyncio.to_thread(firewall.apply)
    again = await BridgeDriver.open_all(openings, firewall)
    assert [driver.gateway for driver in again] == [driver.gateway for driver in drivers]
    leases = await asyncio.gather(*(driver.acquire() for driver in again))
    assert all(pings(lease.sandbox_path, lease.gateway) for lease in leases[::10])


async def test_networks_that_are_opened_at_once_get_different_subnets(settings):
    openings = [Opening(settings._replace(interface=f"hk-{n}", pool6="fd11::/48"), None, []) for n in range(3)]
    drivers = await BridgeDriver.open_all(openings, Firewall(TABLE))
    assert len({driver.subnet for driver in drivers}) == 3
    assert len({driver.subnet6 for driver in drivers}) == 3


async def test_a_network_of_ipv6_alone(settings):
    driver = await open_driver(settings._replace(ipv4=False, pool6="fd11:22:33::/48"), None, [])
    assert (driver.subnet, driver.gateway) == ("", "")
    one, other = await driver.acquire(), await driver.acquire(Wish(address6="fd11:22:33::99"))
    assert (one.ip_address, one.prefix_len, one.gateway) == ("", 0, "")
    assert pings(one.sandbox_path, other.ip6_address)
    with pytest.raises(InvalidParameter, match=r"no configured subnet contains IP address 10\.0\.0\.9"):
        await driver.acquire(Wish(address="10.0.0.9"))
    with pytest.raises(Forbidden, match="Address already in use"):
        await driver.acquire(Wish(address6="fd11:22:33::99"))
    await asyncio.gather(driver.release(one), driver.release(other))
    await driver.close(remove=True)
    assert veths() == set()


def default_routes(sandbox_path: str) -> list[str]:
    command = ["nsenter", f"--net={sandbox_path}", "sh", "-c", "ip route; ip -6 route"]
    listed = subprocess.check_output(command, text=True).splitlines()
    return [" ".join(line.split()[:4]) for line in listed if line.startswith("default")]


async def test_packets_leave_without_a_gateway_where_there_is_none(settings):
    """As on an ipvlan network in l3 mode, for which this kernel may have no interfaces."""
    driver = await open_driver(settings._replace(pool6="fd11:22:33::/48"), None, [])
    wiring = sandbox.Wiring(
        bridge=settings.interface,
        address=IPv4Interface("172.17.0.77/16"),
        gateway=None,
        mtu=1500,
        address6=IPv6Interface("fd11:22:33::77/64"),
        direct=True,
    )
    lease = await asyncio.to_thread(sandbox.build, settings.netns_dir, wiring)
    assert lease.direct
    assert default_routes(lease.sandbox_path) == ["default dev eth0 scope", "default dev eth0 metric"]

    def lead(way: sandbox.Way, way6: sandbox.Way) -> list[str]:
        sandbox.set_default_route(lease.sandbox_path, way, way6)
        return default_routes(lease.sandbox_path)

    over = ["default via 172.17.0.1 dev", "default via fd11:22:33::1 dev"]
    assert lead(sandbox.Way(driver.gateway), sandbox.Way(driver.gateway6)) == over
    direct = sandbox.Way("", "eth0")
    assert lead(direct, direct) == ["default dev eth0 scope", "default dev eth0 metric"]
    assert lead(sandbox.NOWHERE, sandbox.NOWHERE) == []
    await driver.release(lease)
