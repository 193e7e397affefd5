"""A whole daemon in a network of its own, and a container with the usual capabilities that attacks it with frames."""

import socket
import subprocess
from pathlib import Path

import pytest

from husk.kernel import namespaces, sysctl
from tests.integration.networks.conftest import Network, bridge, reach, serving
from tests.support import frames
from tests.support.bridges import HOST_OUTSIDE, OUTSIDE
from tests.support.daemon import Daemon

PREFIX = "2001:db8:bad::/64"
BROADCAST = "255.255.255.255"


def shown(*command: str) -> str:
    return subprocess.run(["ip", *command], capture_output=True, text=True, check=True).stdout


def own_mac(net: Network, container: str) -> str:
    """The container may send raw frames, and its capabilities say so."""
    status = net.daemon.docker("exec", container, "grep", "CapEff", "/proc/self/status").stdout
    assert int(status.split()[1], 16) & 1 << 13, "CAP_NET_RAW is one of the defaults"
    return namespaces.run_inside(
        net.sandbox(container), lambda: shown("-o", "link", "show", "eth0").partition("link/ether ")[2].split()[0]
    )


@pytest.fixture
def net(fresh_daemon: Daemon) -> Network:
    sysctl.write("net/ipv6/conf/all/forwarding", "0")
    return Network(fresh_daemon)


def advertise(net: Network, container: str) -> None:
    """Five frames that say: I am the router."""
    lie = frames.router_advertisement(own_mac(net, container), PREFIX)
    with frames.raw_socket(net.sandbox(container)) as raw:
        for _ in range(5):
            raw.send(lie)
    # What comes after them on the same way has been answered: they have been dealt with.
    gateway = net.inspect(container, "{{range .NetworkSettings.Networks}}{{.Gateway}}{{end}}")
    assert net.pings(container, gateway)


@pytest.mark.parametrize("name", ["bridge", "six"])
def test_the_daemons_network_gets_no_router_from_a_container(net, name):
    interface = net.daemon.config.bridge_name
    if name == "six":
        net.create("six", "--ipv6")
        net.create("seven", "--ipv6")
        interface = bridge(net, "six")
        assert sysctl.read("net/ipv6/conf/all/forwarding") == "1"
    net.run("attacker", "--network", name)
    advertise(net, "attacker")
    assert "default" not in shown("-6", "route")
    assert "2001:db8:bad:" not in shown("-6", "route") + shown("-6", "addr")
    for link in Path("/proc/sys/net/ipv6/conf").iterdir():
        if link.name not in ("all", "default", "lo"):
            assert sysctl.read(f"net/ipv6/conf/{link.name}/accept_ra") == "0", link.name
    # As an earlier release may have left it: the next start makes it so again.
    sysctl.write(f"net/ipv6/conf/{interface}/accept_ra", "2")
    net.daemon.restart()
    assert sysctl.read(f"net/ipv6/conf/{interface}/accept_ra") == "0"
    advertise(net, "attacker")
    assert "default" not in shown("-6", "route")


def test_a_published_port_leads_to_its_container_whoever_claims_to_be_it(net):
    net.run("victim", "-p", "127.0.0.1::80")
    net.run("attacker")
    mac, stolen = own_mac(net, "attacker"), own_mac(net, "victim")
    sysctl.write(f"net/ipv4/neigh/{net.daemon.config.bridge_name}/locktime", "0")
    with serving(net.sandbox("victim"), 80):
        assert reach("127.0.0.1", net.port("victim", "80")) == net.gateway
        with frames.raw_socket(net.sandbox("attacker")) as raw:
            for _ in range(3):
                raw.send(frames.arp(mac, net.address("victim"), reply=False))
                raw.send(frames.udp(stolen, frames.EVERYBODY, (net.address("victim"), 1), (BROADCAST, 9), b""))
        assert net.pings("attacker", net.gateway)
        assert reach("127.0.0.1", net.port("victim", "80")) == net.gateway


def test_what_others_on_the_host_translate_opens_no_bridge(net, outside):
    net.run("victim", "-p", "8080:80")
    rules = f"""
    add table ip other
    add chain ip other prerouting {{ type nat hook prerouting priority -110; }}
    add rule ip other prerouting tcp dport 9090 dnat to {net.address("victim")}:80
    """
    subprocess.run(["nft", "-f", "-"], input=rules, text=True, check=True)
    with serving(net.sandbox("victim"), 80):

        def ask(port: int) -> socket.socket:
            made = socket.socket()
            made.setblocking(False)
            made.connect_ex((str(HOST_OUTSIDE.ip), port))
            return made

        with namespaces.run_inside(outside, lambda: ask(9090)) as by_others:
            assert namespaces.run_inside(outside, lambda: reach(str(HOST_OUTSIDE.ip), 8080)) == str(OUTSIDE.ip)
            # What was sent before has been answered, or never is.
            with pytest.raises(OSError):
                by_others.getpeername()
