"""The gateway between containers and the world: `nat`, `nat-unprotected`, `routed` and `isolated`, with real
packets."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.integration.networks.conftest import address6, inside, reach, serving
from tests.support.free_ports import free_port

MODE_4 = "com.docker.network.bridge.gateway_mode_ipv4"
MODE_6 = "com.docker.network.bridge.gateway_mode_ipv6"


@pytest.fixture
def made(net, outside):
    """A network in a mode, with a container `web` that publishes port 80; the outside has a route there."""

    def make(mode: str, *options: str) -> str:
        net.create("gate", "-o", f"{MODE_4}={mode}", *options)
        net.run("web", "--network", "gate", "-p", f"{free_port()}:80")
        subnet = json.loads(net.daemon.docker("network", "inspect", "gate").stdout)[0]["IPAM"]["Config"][0]["Subnet"]
        command = ["busybox", "ip", "route", "add", subnet, "via", outside.host]
        inside(outside.namespace, lambda: subprocess.run(command, check=True))
        return net.address("web", "gate")

    return make


def pings_from(outside, address: str) -> bool:
    command = ["busybox", "ping", "-c1", "-W1", address]
    return inside(outside.namespace, lambda: subprocess.run(command, capture_output=True)).returncode == 0


def test_nat_hides_containers_from_who_has_a_route(net, outside, made):
    address = made("nat")
    with serving(net.sandbox("web"), 80), serving(net.sandbox("web"), 81):
        assert reach(address, 80, outside.namespace, seconds=1) == ""
        assert reach(address, 81, outside.namespace, seconds=1) == ""
        assert reach(outside.host, net.port("web", "80/tcp"), outside.namespace) == outside.address
    assert not pings_from(outside, address)


def test_nat_unprotected_lets_everybody_in_who_has_a_route(net, outside, made):
    address = made("nat-unprotected")
    with serving(net.sandbox("web"), 80), serving(net.sandbox("web"), 81):
        assert reach(address, 80, outside.namespace) == outside.address
        assert reach(address, 81, outside.namespace) == outside.address
        assert reach(outside.host, net.port("web", "80/tcp"), outside.namespace) == outside.address
    with serving(outside.namespace, 7000):
        assert reach(outside.address, 7000, net.sandbox("web")) == outside.host, "masqueraded"


def test_routed_containers_are_reached_as_themselves_at_what_they_publish(net, outside, made):
    address = made("routed")
    net.run("other")
    with serving(net.sandbox("web"), 80), serving(net.sandbox("web"), 81):
        assert reach(address, 80, outside.namespace) == outside.address
        assert reach(address, 81, outside.namespace, seconds=1) == ""
        assert reach(address, 80, net.sandbox("other")) == net.address("other"), "from another network too"
        assert reach(address, 81, net.sandbox("other"), seconds=1) == ""
        assert reach(address, 81) != "", "the host itself sees everything"
    with serving(outside.namespace, 7000):
        assert reach(outside.address, 7000, net.sandbox("web")) == address, "no address of the host's is lent"
    assert pings_from(outside, address)
    shown = json.loads(net.inspect("web", '{{json (index .NetworkSettings.Ports "80/tcp")}}'))
    assert shown == [{"HostIp": "0.0.0.0", "HostPort": ""}]
    [listed] = [c for c in net.daemon.http("GET", "/containers/json").json() if c["Names"] == ["/web"]]
    assert listed["Ports"] == [{"PrivatePort": 80, "Type": "tcp"}]


def test_routed_ports_outlive_the_daemon_and_a_flush_and_go_with_the_container(net, outside, made):
    address = made("routed")
    net.daemon.kill9()
    sandbox = next(Path(net.daemon.config.exec_root, "netns").iterdir())
    assert sandbox.exists()
    net.daemon.start()
    subprocess.run(["nft", "flush", "set", "ip", net.daemon.config.nft_table, "opened"], check=True)
    net.daemon.reload()
    with serving(net.sandbox("web"), 80):
        assert reach(address, 80, outside.namespace) == outside.address
    net.daemon.docker("rm", "-f", "web")
    listed = subprocess.check_output(["nft", "list", "set", "ip", net.daemon.config.nft_table, "opened"], text=True)
    assert "elements" not in listed


def test_ports_change_their_way_with_the_containers_networks(net, outside, made):
    made("routed")
    net.create("another")
    assert net.daemon.docker("port", "web").stdout.strip() in ("80/tcp -> 0.0.0.0:", "")
    net.daemon.docker("network", "connect", "another", "web")
    # `another` comes before `gate` and leads outside now.
    port = net.port("web", "80/tcp")
    with serving(net.sandbox("web"), 80):
        assert reach(outside.host, port, outside.namespace) == outside.address
    net.daemon.docker("network", "disconnect", "another", "web")
    with serving(net.sandbox("web"), 80):
        assert reach(outside.host, port, outside.namespace, seconds=1) == ""
        assert reach(net.address("web", "gate"), 80, outside.namespace) == outside.address


@pytest.mark.skipif(not Path("/proc/sys/net/ipv6").exists(), reason="the kernel has no IPv6")
def test_each_kind_of_address_has_its_own_mode(net, outside, outside6, prefix):
    net.create("gate", "-o", f"{MODE_6}=routed", "--ipv6", "--subnet", f"{prefix}:1::/64")
    net.run("web", "--network", "gate", "-p", f"{free_port()}:80")
    command = ["ip", "-6", "route", "add", f"{prefix}:1::/64", "via", outside6.host]
    inside(outside6.namespace, lambda: subprocess.run(command, check=True))
    with serving(net.sandbox("web"), 80, address="::"), serving(net.sandbox("web"), 81, address="::"):
        assert reach(address6(net, "web", "gate"), 80, outside6.namespace) == outside6.address
        assert reach(address6(net, "web", "gate"), 81, outside6.namespace, seconds=1) == ""
        assert reach(outside.host, net.port("web", "80/tcp"), outside.namespace) != ""
    shown = json.loads(net.inspect("web", '{{json (index .NetworkSettings.Ports "80/tcp")}}'))
    assert [(binding["HostIp"], bool(binding["HostPort"])) for binding in shown] == [("0.0.0.0", True), ("::", False)]


def test_an_isolated_network_is_the_containers_alone(net):
    net.create("gate", "-o", f"{MODE_4}=isolated", "--internal", "--subnet", "10.221.0.0/24")
    shown = json.loads(net.daemon.docker("network", "inspect", "gate").stdout)[0]
    assert shown["IPAM"]["Config"] == [{"Subnet": "10.221.0.0/24"}]
    net.run("one", "--network", "gate")
    net.run("two", "--network", "gate")
    assert net.address("one", "gate") == "10.221.0.1", "nobody else has the first address"
    assert net.pings("two", "10.221.0.1")
    bridge = f"br-{shown['Id'][:12]}"
    addresses = subprocess.check_output(["ip", "addr", "show", bridge], text=True)
    assert "10.221" not in addresses
    assert net.daemon.docker("exec", "two", "nslookup", "one").returncode == 0, "names are resolved all the same"
    net.daemon.kill9()
    net.daemon.start()
    assert "10.221" not in subprocess.check_output(["ip", "addr", "show", bridge], text=True)
    assert net.pings("two", "10.221.0.1")


def test_what_is_refused(net):
    for mode, words in (
        ("isolated", "gateway mode 'isolated' can only be used for an internal network"),
        ("bridged", "unknown gateway mode bridged"),
    ):
        done = net.daemon.docker("network", "create", "-o", f"{MODE_4}={mode}", "gate", check=False)
        assert words in done.stderr
    assert "gate" not in net.daemon.docker("network", "ls").stdout
