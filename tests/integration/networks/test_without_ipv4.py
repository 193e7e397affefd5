"""Networks that have IPv6 alone: addresses, names, ways out and in, and nothing of IPv4."""

import json
import socket
import subprocess
from pathlib import Path

import pytest

from husk.network import dns
from tests.integration.networks.conftest import aaaa, address6, network, reach, serving
from tests.integration.networks.test_names import ask
from tests.support.free_ports import free_port

pytestmark = pytest.mark.skipif(not Path("/proc/sys/net/ipv6").exists(), reason="the kernel has no IPv6")


@pytest.fixture
def six(net):
    return lambda *options: net.create("six", "--ipv4=false", "--ipv6", *options)


def routes(net, container: str, version: int) -> str:
    command = ["nsenter", f"--net={net.sandbox(container)}", "ip", f"-{version}", "route"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_there_is_one_subnet_and_containers_have_one_address(net, six):
    six()
    shown = json.loads(net.daemon.docker("network", "inspect", "six").stdout)[0]
    [pool] = shown["IPAM"]["Config"]
    assert pool["Subnet"].endswith("::/64")
    status = net.daemon.http("GET", "/v1.52/networks/six").json()
    assert (status["EnableIPv4"], status["EnableIPv6"]) == (False, True)
    assert list(status["Status"]["IPAM"]["Subnets"]) == [pool["Subnet"]]
    net.run("one", "--network", "six")
    net.run("two", "--network", "six")
    settings = json.loads(net.inspect("one", "{{json .NetworkSettings.Networks.six}}"))
    assert (settings["IPAddress"], settings["IPPrefixLen"], settings["Gateway"]) == ("", 0, "")
    assert settings["IPv6Gateway"] == pool["Gateway"]
    assert (
        settings["MacAddress"] != json.loads(net.inspect("two", "{{json .NetworkSettings.Networks.six}}"))["MacAddress"]
    )
    assert net.pings("one", address6(net, "two", "six"))
    assert routes(net, "one", 4) == ""
    assert f"default via {pool['Gateway']}" in routes(net, "one", 6)
    on_it = json.loads(net.daemon.docker("network", "inspect", "six").stdout)[0]["Containers"]
    assert {entry["IPv4Address"] for entry in on_it.values()} == {""}


def test_names_are_resolved_to_what_there_is(net, six):
    six()
    net.run("one", "--network", "six", "--network-alias", "first")
    net.run("two", "--network", "six")
    sandbox = net.sandbox("two")
    assert aaaa(ask(sandbox, "first", dns.AAAA)) == [address6(net, "one", "six")]
    response = ask(sandbox, "one", dns.A)
    assert (dns.code(response), int.from_bytes(response[6:8])) == (dns.NO_ERROR, 0)
    assert net.daemon.docker("exec", "two", "ping", "-c1", "one").returncode == 0
    hosts = net.daemon.docker("exec", "one", "cat", "/etc/hosts").stdout
    assert f"{address6(net, 'one', 'six')}\t" in hosts


def test_the_way_out_is_masqueraded(net, six, outside6):
    six()
    net.run("one", "--network", "six")
    with serving(outside6.namespace, 7000, address="::"):
        assert reach(outside6.address, 7000, net.sandbox("one")) == outside6.host


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_a_port_is_reached_over_both(net, six, outside, outside6, kind):
    protocol = "tcp" if kind == socket.SOCK_STREAM else "udp"
    six()
    net.run("web", "--network", "six", "-p", f"80/{protocol}")
    net.run("other", "--network", "six")
    net.run("elsewhere")
    port = net.port("web", f"80/{protocol}")
    with serving(net.sandbox("web"), 80, kind, "::"):
        assert reach(outside6.host, port, outside6.namespace, kind) == outside6.address
        assert reach("::1", port, kind=kind) != ""
        assert reach(outside6.host, port, net.sandbox("other"), kind) != "", "from a neighbour"
        assert reach("127.0.0.1", port, kind=kind) != ""
        assert reach(outside.host, port, outside.namespace, kind) != ""
        assert reach(outside.host, port, net.sandbox("elsewhere"), kind) != "", "from a network without IPv6"


def test_sctp_is_published_where_rules_can_lead_it(net, six):
    six()
    net.run("web", "--network", "six", "-p", f"{free_port()}:80/sctp")
    bindings = json.loads(net.inspect("web", '{{json (index .NetworkSettings.Ports "80/sctp")}}'))
    assert [binding["HostIp"] for binding in bindings] == ["::"]


def test_it_goes_with_other_networks_while_it_runs(net, six, outside):
    six()
    net.create("four")
    port = free_port()
    net.run("web", "--network", "six", "-p", f"{port}:80")
    net.daemon.docker("network", "connect", "four", "web")
    assert "default via" in routes(net, "web", 4)
    assert "default via" in routes(net, "web", 6)
    with serving(net.sandbox("web"), 80):
        assert reach(outside.host, port, outside.namespace) == outside.address, "by a rule now, not through the daemon"
    net.daemon.docker("network", "disconnect", "four", "web")
    assert routes(net, "web", 4) == ""
    with serving(net.sandbox("web"), 80, address="::"):
        assert reach(outside.host, port, outside.namespace) != ""


def test_it_outlives_the_daemon(net, six, outside6):
    six()
    port = free_port()
    net.run("web", "--network", "six", "-p", f"{port}:80")
    address = address6(net, "web", "six")
    net.daemon.kill9()
    net.daemon.start()
    assert address6(net, "web", "six") == address
    with serving(net.sandbox("web"), 80, address="::"):
        assert reach(outside6.host, port, outside6.namespace) == outside6.address
        assert reach("127.0.0.1", port) != ""


def test_chosen_addresses_and_internal_networks(net, six, prefix, outside6):
    six("--internal", "--subnet", f"{prefix}:1::/64")
    net.run("one", "--network", "six", "--ip6", f"{prefix}:1::aa")
    assert address6(net, "one", "six") == f"{prefix}:1::aa"
    assert "default" not in routes(net, "one", 6)
    with serving(outside6.namespace, 7000, address="::"):
        assert reach(outside6.address, 7000, net.sandbox("one"), seconds=1) == ""
    refused = net.daemon.docker("run", "--network", "six", "--ip", "10.0.0.9", "busybox", "true", check=False)
    assert (
        "user specified IP address is supported only when connecting to networks with user configured" in refused.stderr
    )


def test_neither_is_refused(net):
    answer = net.daemon.http("POST", "/networks/create", {"Name": "nothing", "EnableIPv4": False})
    assert (answer.status, answer.json()["message"]) == (400, "IPv4 or IPv6 must be enabled")


def test_a_client_that_does_not_know_of_it_gets_ipv4(net):
    body = {"Name": "both", "EnableIPv4": False, "EnableIPv6": True}
    assert net.daemon.http("POST", "/v1.47/networks/create", body).status == 201
    assert network(net, "both")["EnableIPv4"] is True
    net.run("one", "--network", "both")
    assert net.address("one", "both") != ""
