"""Containers on a bridge reach what they should and nothing else."""

import asyncio
import subprocess
from ipaddress import IPv4Interface, IPv6Interface
from pathlib import Path

import pytest

from husk.errors import Forbidden, InvalidParameter, SystemFault
from husk.kernel import namespaces, rtaddresses, rtnetlink, sysctl
from husk.kernel.netlink import NetlinkSocket
from husk.kernel.nftables import Nftables
from husk.network import host, sandbox
from husk.network.bridge import BridgeDriver
from husk.network.endpoint import EndpointOptions
from husk.network.firewall import Firewall
from husk.network.sandbox import NO_ROUTE, DefaultRoute
from husk.network.settings import BridgeSettings, Opening
from tests.support.bridges import (
    HOST_OUTSIDE,
    OUTSIDE,
    TABLE,
    open_driver,
    pings,
    run_inside,
    udp_socket,
    veths,
)


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
    driver.release(here)
    await driver.close(remove=True)
    assert pings(there.sandbox_path, other.gateway)
    assert "husk-other" in Nftables().run("list tables")
    other.release(there)
    await other.close(remove=True)


async def test_bip_sets_gateway_and_subnet_and_replaces_the_old_address(settings):
    await (await open_driver(settings, None, [])).close(remove=False)
    driver = await open_driver(settings._replace(bip="10.7.0.9/24"), "172.17.0.0/16", [])
    assert (driver.gateway, driver.subnet) == ("10.7.0.9", "10.7.0.0/24")
    lease = await driver.acquire()
    assert (lease.ip_address, lease.prefix_len) == ("10.7.0.1", 24)
    assert pings(lease.sandbox_path, "10.7.0.9")
    with NetlinkSocket() as netlink:
        addresses = [rtaddresses.parse_address(payload) for payload in netlink.dump(rtaddresses.list_addresses())]
    assert [str(entry.interface) for entry in addresses] == ["127.0.0.1/8", "10.7.0.9/24"]


async def test_containers_send_no_larger_packets_than_the_uplink_takes(settings, outside):
    with NetlinkSocket() as netlink:
        netlink.execute(rtaddresses.add_default_route(OUTSIDE.ip))
    driver = await open_driver(settings, None, [])
    lease = await driver.acquire()
    with NetlinkSocket() as netlink:
        found = {link.name: link.mtu for link in map(rtnetlink.parse_link, netlink.dump(rtnetlink.list_links()))}
    assert found[lease.host_interface] == 1400
    assert found[settings.interface] == 1400


async def test_an_endpoint_has_an_ipv6_address_too(settings):
    driver = await open_driver(settings._replace(pool6="fd11:22:33::/48"), None, [])
    assert (driver.subnet6, driver.gateway6) == ("fd11:22:33::/64", "fd11:22:33::1")
    one, other = await driver.acquire(), await driver.acquire(EndpointOptions(address6="fd11:22:33::99"))
    assert (one.ip6_address, other.ip6_address) == ("fd11:22:33::2", "fd11:22:33::99")
    assert pings(one.sandbox_path, other.ip6_address)
    assert pings(one.sandbox_path, driver.gateway6)
    driver.release(other)
    again = await driver.acquire(EndpointOptions(address6="fd11:22:33::99"))
    assert again.ip6_address == "fd11:22:33::99"
    driver.release(one)
    driver.release(again)
    await driver.close(remove=True)
    assert veths() == set()


async def test_a_bridge_that_cannot_have_its_address_does_not_stay(settings):
    with pytest.raises(SystemFault, match="cannot be set up"):
        await open_driver(settings._replace(bip6="::1/64"), None, [])
    assert host.find(settings.interface) is None


async def test_the_next_network_gets_the_next_ipv6_subnet(settings, tmp_path):
    driver = await open_driver(settings._replace(pool6="fd11:22:33::/48"), None, [])
    other = await open_driver(settings._replace(interface="hk-next-0", pool6="fd11:22:33::/48"), None, [])
    assert (driver.subnet6, other.subnet6) == ("fd11:22:33::/64", "fd11:22:33:1::/64")


async def test_an_interface_gets_its_name_and_settings(settings):
    driver = await open_driver(settings, None, [])
    sysctls = (("net/ipv4/conf/IFNAME/log_martians", "1"),)
    lease = await driver.acquire(EndpointOptions(name="lan7", sysctls=sysctls))
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
    one, other = await driver.acquire(), await driver.acquire(EndpointOptions(address6="fd11:22:33::99"))
    assert (one.ip_address, one.prefix_len, one.gateway) == ("", 0, "")
    assert pings(one.sandbox_path, other.ip6_address)
    with pytest.raises(InvalidParameter, match=r"no configured subnet contains IP address 10\.0\.0\.9"):
        await driver.acquire(EndpointOptions(address="10.0.0.9"))
    with pytest.raises(Forbidden, match="Address already in use"):
        await driver.acquire(EndpointOptions(address6="fd11:22:33::99"))
    driver.release(one)
    driver.release(other)
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

    def lead(route: DefaultRoute, route6: DefaultRoute) -> list[str]:
        sandbox.set_default_route(lease.sandbox_path, route, route6)
        return default_routes(lease.sandbox_path)

    over = ["default via 172.17.0.1 dev", "default via fd11:22:33::1 dev"]
    assert lead(DefaultRoute(driver.gateway), DefaultRoute(driver.gateway6)) == over
    direct = DefaultRoute("", "eth0")
    assert lead(direct, direct) == ["default dev eth0 scope", "default dev eth0 metric"]
    assert lead(NO_ROUTE, NO_ROUTE) == []
    driver.release(lease)


def test_what_a_host_uses_is_told_without_what_is_left_out() -> None:
    for command in (
        "link add one type bridge",
        "link add two type bridge",
        "address add 198.51.100.65/26 dev one",
        "address add 10.9.0.1/24 dev two",
        "link set one up",
        "link set two up",
        "route add 203.0.113.0/25 via 198.51.100.66",
        "route add 203.0.113.128/25 via 198.51.100.66",
        "route add default via 198.51.100.66",
    ):
        subprocess.run(["ip", *command.split()], check=True)
    mine = set(host.used({"two", "absent"})) - {f"{server}/32" for server in host.name_servers()}
    assert mine == {"198.51.100.64/26", "203.0.113.0/24"}, "neighbouring ones are one; no loopback, no default route"
    assert "10.9.0.0/24" in host.used(())
