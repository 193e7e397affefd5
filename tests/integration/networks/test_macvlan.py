"""Containers on an interface of the host instead of a bridge: neighbours of whoever is on the other end of it."""

import json
import secrets
import socket
import subprocess
from collections.abc import Iterator
from ipaddress import IPv4Interface
from pathlib import Path
from typing import NamedTuple

import pytest

from husk.kernel import namespaces, rtaddresses, rtnetlink
from husk.kernel.netlink import NetlinkSocket
from tests.integration.networks.conftest import Network, reach, serving


def supported(kind: str) -> bool:
    with NetlinkSocket() as netlink:
        name = "hk" + secrets.token_hex(4)
        add = rtnetlink.add_macvlan if kind == "macvlan" else rtnetlink.add_ipvlan
        (error,) = netlink.attempt([add(name, 0x7FFFFFFF, mode=0)])
    return error is None or "not supported" not in str(error)


class Wire(NamedTuple):
    parent: str
    neighbour: Path
    prefix: str


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Wire]:
    """An uplink of the host with somebody else at its other end."""
    prefix = f"198.18.{secrets.randbelow(256)}"
    parent, path = "up" + secrets.token_hex(4), tmp_path / "neighbour"
    with NetlinkSocket() as host:

        def connect(namespace: int) -> None:
            host.execute(rtnetlink.add_veth(parent, "eth0", peer_namespace=namespace))
            with NetlinkSocket() as inside:
                address = IPv4Interface(f"{prefix}.1/24")
                inside.execute(
                    rtaddresses.add_address(socket.if_nametoindex("eth0"), address), rtnetlink.set_up("eth0")
                )

        namespaces.create(path, connect)
        try:
            host.execute(rtnetlink.set_up(parent))
            yield Wire(parent, path, prefix)
        finally:
            namespaces.remove(path)
            host.attempt([rtnetlink.delete_link(parent)])


def create(net: Network, name: str, wire: Wire, *options: str, driver: str = "macvlan") -> None:
    net.create(name, "-d", driver, "-o", f"parent={wire.parent}", "--subnet", f"{wire.prefix}.0/24", *options)


needs_macvlan = pytest.mark.skipif(not supported("macvlan"), reason="the kernel has no macvlan")


@needs_macvlan
def test_containers_are_neighbours_of_who_is_on_the_wire(net, wire):
    create(net, "lan", wire, "--gateway", f"{wire.prefix}.1")
    net.run("one", "--network", "lan", "--ip", f"{wire.prefix}.77")
    net.run("two", "--network", "lan")
    assert net.address("one", "lan") == f"{wire.prefix}.77"
    with serving(net.sandbox("one"), 80):
        assert reach(f"{wire.prefix}.77", 80, wire.neighbour) == f"{wire.prefix}.1"
        assert reach(f"{wire.prefix}.77", 80, net.sandbox("two")) == net.address("two", "lan")
    assert net.pings("two", f"{wire.prefix}.1")
    shown = json.loads(net.daemon.docker("network", "inspect", "lan").stdout)[0]
    assert (shown["Driver"], shown["Options"]["parent"]) == ("macvlan", wire.parent)
    assert len(shown["Containers"]) == 2


@needs_macvlan
def test_names_and_joining_and_leaving(net, wire):
    create(net, "lan", wire)
    net.run("one", "--network", "lan")
    net.run("two")
    net.daemon.docker("network", "connect", "lan", "two")
    assert net.daemon.docker("exec", "two", "ping", "-c1", "-W3", "one").returncode == 0
    net.daemon.docker("network", "disconnect", "lan", "two")
    links = subprocess.run(["nsenter", f"--net={net.sandbox('two')}", "ls", "/sys/class/net"], capture_output=True)
    assert links.returncode == 0
    assert net.daemon.docker("exec", "two", "ping", "-c1", "-W1", net.address("one", "lan"), check=False).returncode
    net.daemon.docker("network", "connect", "lan", "two")


@needs_macvlan
def test_an_address_is_free_again_and_the_state_outlives_the_daemon(net, wire):
    create(net, "lan", wire)
    net.run("one", "--network", "lan")
    net.run("two", "--network", "lan")
    first, second = net.address("one", "lan"), net.address("two", "lan")
    net.daemon.docker("rm", "-f", "one")
    net.daemon.kill9()
    net.daemon.start()
    net.run("three", "--network", "lan")
    assert (net.address("three", "lan"), net.address("two", "lan")) == (first, second)
    assert net.pings("three", second)


@needs_macvlan
def test_without_a_parent_it_leads_nowhere(net):
    net.create("alone", "-d", "macvlan", "--internal")
    identity = net.daemon.docker("network", "inspect", "-f", "{{.Id}}", "alone").stdout.strip()
    net.run("one", "--network", "alone")
    net.run("two", "--network", "alone")
    assert net.pings("one", net.address("two", "alone"))
    assert Path(f"/sys/class/net/dm-{identity[:12]}").exists()
    net.daemon.remove_containers()
    net.daemon.docker("network", "rm", "alone")
    assert not Path(f"/sys/class/net/dm-{identity[:12]}").exists()


@needs_macvlan
def test_published_ports_mean_nothing_there(net, wire):
    create(net, "lan", wire)
    net.run("one", "--network", "lan", "-p", "80")
    assert json.loads(net.inspect("one", "{{json .NetworkSettings.Ports}}")) == {"80/tcp": None}


@needs_macvlan
def test_a_parent_has_one_network_and_must_be_there(net, wire):
    create(net, "lan", wire)
    done = net.daemon.docker("network", "create", "-d", "macvlan", "-o", f"parent={wire.parent}", "more", check=False)
    assert f"network lan is already using parent interface {wire.parent}" in done.stderr
    done = net.daemon.docker("network", "create", "-d", "macvlan", "-o", "parent=nowhere0", "more", check=False)
    assert "no interface nowhere0" in done.stderr


@pytest.mark.skipif(supported("ipvlan"), reason="the kernel has ipvlan")
@pytest.mark.parametrize("mode", ["l2", "l3", "l3s"])
def test_a_kernel_without_ipvlan_is_named(net, wire, mode):
    options = ("-d", "ipvlan", "-o", f"parent={wire.parent}", "-o", f"ipvlan_mode={mode}")
    done = net.daemon.docker("network", "create", *options, "lan", check=False)
    assert "this host's kernel has no ipvlan interfaces (CONFIG_IPVLAN)" in done.stderr
    assert "lan" not in net.daemon.docker("network", "ls", "--format", "{{.Name}}").stdout.split()


@pytest.mark.skipif(not supported("ipvlan"), reason="the kernel has no ipvlan")
def test_ipvlan_containers_are_neighbours_too(net, wire):
    create(net, "lan", wire, driver="ipvlan")
    net.run("one", "--network", "lan")
    net.run("two", "--network", "lan")
    assert net.pings("one", net.address("two", "lan"))
    assert net.pings("one", f"{wire.prefix}.1")


@pytest.mark.skipif(not supported("ipvlan"), reason="the kernel has no ipvlan")
@pytest.mark.parametrize("mode", ["l3", "l3s"])
def test_ipvlan_that_routes_has_no_gateway_and_leads_out_all_the_same(net, wire, mode):
    net.create("lan", "-d", "ipvlan", "-o", f"parent={wire.parent}", "-o", f"ipvlan_mode={mode}")
    net.run("one", "--network", "lan")
    net.run("two", "--network", "lan")
    assert net.pings("one", net.address("two", "lan"))
    assert net.inspect("one", "{{.NetworkSettings.Networks.lan.Gateway}}") == ""
    routes = subprocess.check_output(["nsenter", f"--net={net.sandbox('one')}", "ip", "route"], text=True)
    assert "default dev eth0 scope link" in routes


def test_a_vlan_of_the_parent_is_made_or_refused_clearly(net, wire):
    parent = f"parent={wire.parent}.20"
    done = net.daemon.docker("network", "create", "-d", "macvlan", "-o", parent, "tagged", check=False)
    if done.returncode:
        assert "CONFIG_VLAN_8021Q" in done.stderr
    else:
        assert Path(f"/sys/class/net/{wire.parent}.20").exists()
        net.daemon.docker("network", "rm", "tagged")
        assert not Path(f"/sys/class/net/{wire.parent}.20").exists()
