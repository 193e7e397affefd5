"""Things of a bridge are given and taken back, whatever happens; a crash leaves nothing that the next start keeps."""

import asyncio
import socket
import subprocess
from ipaddress import IPv4Interface

import pytest

from husk.config import AddressPool
from husk.errors import Conflict, Forbidden, Unavailable
from husk.kernel import rtaddresses, rtnetlink, sysctl
from husk.kernel.netlink import NetlinkSocket
from husk.kernel.nftables import Nftables
from husk.network.balance import Balance, Balancer, VirtualAddress
from husk.network.bridge import BridgeDriver
from husk.network.endpoint import EndpointOptions
from husk.network.firewall import Firewall
from husk.network.sandbox import Lease
from tests.support.bridges import (
    OUTSIDE,
    TABLE,
    links,
    open_driver,
    pings,
    process_inside,
    sandboxes,
    until,
    veths,
)


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
    driver.release(lost)
    driver.release(kept)
    await until(lambda: sandboxes(settings) == {fresh.sandbox_path})


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
    driver.release(first)
    driver.release(first)
    await until(lambda: first.host_interface not in links())
    successor: Lease | None = None

    async def reused() -> Lease:
        while True:
            lease = await driver.acquire()
            if lease.ip_address == first.ip_address:
                return lease
            driver.release(lease)

    successor = await asyncio.wait_for(reused(), 10)
    driver.release(first)
    await driver.close(remove=False)
    assert successor.host_interface in links()
    assert driver._allocator.owners[first.ip_address] == successor.host_interface


async def test_releasing_frees_the_address_though_a_process_lingers(settings):
    driver = await open_driver(settings, None, [])
    lease = await driver.acquire()
    with process_inside(lease.sandbox_path):
        driver.release(lease)
        await until(lambda: lease.host_interface not in links())


async def test_closing_with_remove_leaves_nothing(settings):
    before = links()
    driver = await open_driver(settings._replace(warm=3), None, [])
    lease = await driver.acquire()
    driver.release(lease)
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


async def test_a_pool_that_is_to_stay_cold(settings):
    driver = await open_driver(settings._replace(warm=2), None, [])
    await until(lambda: driver.warm == 2)
    kept = await driver.acquire()
    await driver.keep_cold()
    assert driver.warm == 0
    other = await driver.acquire(EndpointOptions(address="172.17.0.3"))
    assert driver.warm == 0 and driver.uses(kept.ip_address) and other.ip_address == "172.17.0.3"


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
    for lease in leases:
        driver.release(lease)
    await driver.close(remove=True)
    assert veths() == set()


async def test_a_warm_sandbox_that_is_taken_while_room_is_made_for_its_address_is_in_use(settings):
    driver = await open_driver(settings._replace(pool6="fd11:22:33::/48", warm=2), None, [])
    await until(lambda: driver.warm == 2)
    base = driver.gateway.rpartition(".")[0]
    # An address of each of the two: the second one is gone when the first has made room.
    request = EndpointOptions(address=f"{base}.2", address6="fd11:22:33::3")
    refused, taken = await asyncio.gather(driver.acquire(request), driver.acquire(), return_exceptions=True)
    assert isinstance(refused, Forbidden) and refused.message == "Address already in use"
    assert isinstance(taken, Lease) and taken.ip6_address == "fd11:22:33::3"


async def test_room_that_is_made_for_an_address_is_for_nobody_else(settings, monkeypatch):
    driver = await open_driver(settings._replace(warm=1), None, [])
    await until(lambda: driver.warm == 1)
    wanted = driver.gateway.rpartition(".")[0] + ".2"
    free = driver._free

    def free_and_fill(lease: Lease) -> None:
        free(lease)
        driver._pool.refill()  # as another one's acquire does, which may end at any moment

    monkeypatch.setattr(driver, "_free", free_and_fill)
    assert (await driver.acquire(EndpointOptions(address=wanted))).ip_address == wanted


async def test_a_full_subnet_says_so_and_recovers(settings):
    driver = await open_driver(settings._replace(pools=(AddressPool("10.9.0.0/30", 30),), warm=2), None, [])
    lease = await driver.acquire()
    with pytest.raises(Unavailable, match="no available IPv4 addresses"):
        await driver.acquire()
    driver.release(lease)
    assert (await driver.acquire()).ip_address == lease.ip_address


async def test_an_interface_that_is_no_bridge_is_left_alone(settings):
    with NetlinkSocket() as netlink:
        netlink.execute(rtnetlink.add_veth(settings.interface, "peer"))
    with pytest.raises(Conflict, match="is no bridge"):
        await open_driver(settings, None, [])
    assert {settings.interface, "peer"} <= links()


async def test_a_bridge_of_the_administrator_is_used_but_never_deleted(settings):
    with NetlinkSocket() as netlink:
        netlink.execute(
            rtnetlink.add_bridge(settings.interface, "02:00:00:00:00:01"), rtnetlink.add_veth("port0", "machine")
        )
        index = socket.if_nametoindex(settings.interface)
        netlink.execute(
            rtaddresses.add_address(index, IPv4Interface("10.3.0.7/24")), rtnetlink.set_master("port0", index)
        )
    driver = await open_driver(settings, None, [])
    assert (driver.gateway, driver.subnet) == ("10.3.0.7", "10.3.0.0/24")
    await driver.close(remove=True)
    assert {settings.interface, "port0"} <= links()


async def test_forwarding_stays_off_where_the_settings_say_so(settings, caplog):
    sysctl.write("net/ipv4/ip_forward", "0")
    await open_driver(settings._replace(forward=False), None, [])
    assert sysctl.read("net/ipv4/ip_forward") == "0"
    assert "ip-forward is false" in caplog.text


async def test_a_bridge_that_is_missed_is_made_again_and_others_are_told(settings, outside):
    told = []
    firewall = Firewall(settings.owner)
    opened = settings._replace(pool6="fd11:22:33::/48", warm=2)
    driver = await BridgeDriver.open(opened, None, (), firewall, lambda: told.append(settings.interface))
    firewall.apply()
    await until(lambda: driver.warm == 2)
    before = await driver.acquire()
    gateways = (driver.gateway, driver.gateway6)
    with NetlinkSocket() as netlink:
        netlink.execute(rtnetlink.delete_link(settings.interface))
    # Several at once miss it, and it is made once.
    leases = await asyncio.gather(*(driver.acquire() for _ in range(4)))
    assert told == [settings.interface]
    assert (driver.gateway, driver.gateway6) == gateways
    for lease in (before, *leases):
        assert pings(lease.sandbox_path, driver.gateway)
        assert pings(lease.sandbox_path, str(OUTSIDE.ip))
    assert sysctl.read(f"net/ipv6/conf/{settings.interface}/accept_ra") == "0"
    known = subprocess.check_output(["ip", "neigh", "show", "dev", settings.interface], text=True)
    assert all(lease.ip_address in known for lease in (before, *leases))
    await driver.close(remove=False)


async def test_a_virtual_address_comes_back_with_its_bridge(settings):
    balancer = Balancer("husk-test-lb")
    driver = await BridgeDriver.open(settings, None, (), Firewall(settings.owner), balancer.apply)
    balancer.change(Balance((VirtualAddress(settings.interface, "172.17.0.99", ("172.17.0.2",)),)))
    with NetlinkSocket() as netlink:
        netlink.execute(rtnetlink.delete_link(settings.interface))
    await driver.acquire()
    assert "172.17.0.99/32" in subprocess.check_output(["ip", "addr", "show", settings.interface], text=True)
    await driver.close(remove=False)
