"""Networks with IPv6: addresses, names, ways out and ways in. Also ports on IPv6 addresses of containers without it."""

import json
import socket
import subprocess
from functools import partial
from pathlib import Path

import pytest

from husk.network import dns
from tests.integration.networks.conftest import aaaa, address6, reach, serving
from tests.integration.networks.test_names import ask
from tests.support.free_ports import free_port
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(not Path("/proc/sys/net/ipv6").exists(), reason="the kernel has no IPv6")


def test_a_network_gets_a_subnet_of_its_own(net):
    net.create("six", "--ipv6")
    net.create("seven", "--ipv6")
    shown = [json.loads(net.daemon.docker("network", "inspect", name).stdout)[0] for name in ("six", "seven")]
    assert [one["EnableIPv6"] for one in shown] == [True, True]
    pools = [[pool["Subnet"] for pool in one["IPAM"]["Config"]] for one in shown]
    assert all(len(found) == 2 and found[1].startswith("fd") and found[1].endswith("::/64") for found in pools), pools
    assert pools[0] != pools[1]
    net.run("one", "--network", "six")
    net.run("two", "--network", "six")
    assert net.pings("one", address6(net, "two", "six"))
    on_it = json.loads(net.daemon.docker("network", "inspect", "six").stdout)[0]["Containers"]
    assert all(entry["IPv6Address"].endswith("/64") for entry in on_it.values())


def test_a_chosen_subnet_gateway_and_address(net, prefix):
    net.create("six", "--ipv6", "--subnet", f"{prefix}:1::/64", "--gateway", f"{prefix}:1::9")
    net.run("one", "--network", "six", "--ip6", f"{prefix}:1::aa")
    settings = json.loads(net.inspect("one", "{{json .NetworkSettings.Networks.six}}"))
    assert settings["GlobalIPv6Address"] == f"{prefix}:1::aa"
    assert (settings["GlobalIPv6PrefixLen"], settings["IPv6Gateway"]) == (64, f"{prefix}:1::9")
    assert net.pings("one", f"{prefix}:1::9")
    hosts = net.daemon.docker("exec", "one", "cat", "/etc/hosts").stdout
    assert f"{prefix}:1::aa\t" in hosts
    other = net.daemon.docker("run", "--network", "six", "--ip6", f"{prefix}:1::aa", "busybox", "true", check=False)
    assert "Address already in use" in other.stderr
    other = net.daemon.docker("run", "--network", "six", "--ip6", "fd09::1", "busybox", "true", check=False)
    assert "no configured subnet or ip-range contain the IP address fd09::1" in other.stderr


def test_the_address_outlives_the_daemon(net, prefix):
    net.create("six", "--ipv6", "--subnet", f"{prefix}:1::/64")
    net.run("one", "--network", "six")
    net.daemon.kill9()
    net.daemon.start()
    net.run("two", "--network", "six")
    assert (address6(net, "one", "six"), address6(net, "two", "six")) == (f"{prefix}:1::2", f"{prefix}:1::3")
    assert net.pings("two", address6(net, "one", "six"))


def test_names_have_both_addresses(net):
    net.create("six", "--ipv6")
    net.run("one", "--network", "six")
    net.run("two", "--network", "six")
    sandbox = net.sandbox("one")
    assert aaaa(ask(sandbox, "two", dns.AAAA)) == [address6(net, "two", "six")]
    digits = socket.inet_pton(socket.AF_INET6, address6(net, "two", "six")).hex()
    response = ask(sandbox, ".".join(reversed(digits)) + ".ip6.arpa", dns.PTR)
    assert b"\x03two\x03six\x00" in response


def test_the_way_out_is_masqueraded(net, outside6):
    net.create("six", "--ipv6")
    net.run("one", "--network", "six")
    with serving(outside6.namespace, 7000, address="::"):
        assert reach(outside6.address, 7000, net.sandbox("one")) == outside6.host


def test_an_internal_network_has_no_way_out(net, outside6):
    net.create("six", "--ipv6", "--internal")
    net.run("one", "--network", "six")
    with serving(outside6.namespace, 7000, address="::"):
        assert reach(outside6.address, 7000, net.sandbox("one"), seconds=1) == ""


def test_networks_do_not_reach_each_other(net):
    for name in ("six", "seven"):
        net.create(name, "--ipv6")
        net.run(f"on{name}", "--network", name)
    assert not net.pings("onsix", address6(net, "onseven", "seven"), seconds=1)


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_a_port_is_reached_over_both(net, outside, outside6, kind):
    protocol = "tcp" if kind == socket.SOCK_STREAM else "udp"
    net.create("six", "--ipv6")
    net.run("web", "--network", "six", "-p", f"80/{protocol}")
    port = net.port("web", f"80/{protocol}")
    with serving(net.sandbox("web"), 80, kind, "::"):
        assert reach(outside6.host, port, outside6.namespace, kind) == outside6.address, "the container sees who asks"
        assert reach(outside6.host, port, kind=kind) != ""
        assert reach("::1", port, kind=kind) != ""
        assert reach("127.0.0.1", port, kind=kind) != ""
        assert reach(outside.host, port, outside.namespace, kind) != ""


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_a_container_without_ipv6_is_reached_over_it_too(net, outside6, kind):
    protocol = "tcp" if kind == socket.SOCK_STREAM else "udp"
    port = free_port()
    net.run("web", "-p", f"{port}:80/{protocol}")
    with serving(net.sandbox("web"), 80, kind):
        for _ in range(3):
            assert reach("::1", port, kind=kind) != ""
            assert reach(outside6.host, port, outside6.namespace, kind) != ""
        net.daemon.kill9()
        net.daemon.start()
        assert reach("::1", port, kind=kind) != ""


def test_what_clients_are_told(net):
    port = free_port()
    net.run("web", "-p", f"{port}:80", "-p", f"[::1]:{port + 1}:80")
    shown = json.loads(net.inspect("web", '{{json (index .NetworkSettings.Ports "80/tcp")}}'))
    assert shown == [
        {"HostIp": "0.0.0.0", "HostPort": str(port)},
        {"HostIp": "::", "HostPort": str(port)},
        {"HostIp": "::1", "HostPort": str(port + 1)},
    ]
    told = net.daemon.docker("port", "web", "80/tcp").stdout.split()
    assert sorted(told) == sorted([f"0.0.0.0:{port}", f"[::]:{port}", f"[::1]:{port + 1}"])


def test_an_ipv6_address_of_the_host_is_the_only_one(net, outside6):
    port = free_port()
    net.create("six", "--ipv6")
    net.run("web", "--network", "six", "-p", f"[{outside6.host}]:{port}:80")
    with serving(net.sandbox("web"), 80, address="::"):
        assert reach(outside6.host, port, outside6.namespace) == outside6.address
        assert reach("::1", port, seconds=1) == ""
        assert reach("127.0.0.1", port, seconds=1) == ""


def test_a_taken_ipv6_port_is_refused(net):
    with socket.socket(socket.AF_INET6) as program:
        program.bind(("::1", 0))
        program.listen()
        port = program.getsockname()[1]
        done = net.daemon.docker("run", "-p", f"[::1]:{port}:80", "busybox", "true", check=False)
        assert f"failed to bind host port for [::1]:{port}:" in done.stderr
        # With a port of both kinds it is the same.
        done = net.daemon.docker("run", "-p", f"{port}:80", "busybox", "true", check=False)
        assert f"failed to bind host port for [::]:{port}:" in done.stderr


def test_joining_and_leaving_a_network_with_ipv6(net):
    net.create("six", "--ipv6")
    net.run("one")
    net.run("two", "--network", "six")
    net.daemon.docker("network", "connect", "six", "one")
    assert net.pings("one", address6(net, "two", "six"))
    route = ["nsenter", f"--net={net.sandbox('one')}", "ip", "-6", "route", "show", "default"]
    assert "default via fd" in subprocess.run(route, capture_output=True, text=True).stdout
    net.daemon.docker("network", "disconnect", "six", "one")
    assert address6(net, "two", "six") not in net.daemon.docker("exec", "one", "cat", "/etc/hosts").stdout
    assert subprocess.run(route, capture_output=True, text=True).stdout == ""


def test_rules_that_somebody_removes_come_back(net, outside6):
    net.create("six", "--ipv6")
    net.run("web", "--network", "six", "-p", "80")
    port = net.port("web", "80/tcp")
    subprocess.run(["nft", "delete", "table", "ip6", net.daemon.config.nft_table], check=True)
    with serving(net.sandbox("web"), 80, address="::"):
        net.daemon.reload()
        wait_until(lambda: reach(outside6.host, port, outside6.namespace, seconds=1) != "", "the rules are there again")


def test_the_table_goes_with_the_last_network(net):
    net.create("six", "--ipv6")
    net.daemon.docker("network", "rm", "six")
    net.daemon.restart()
    listed = subprocess.run(["nft", "list", "tables"], capture_output=True, text=True).stdout
    assert f"ip6 {net.daemon.config.nft_table}\n" not in listed


def test_a_subnet_of_addresses_of_the_link(net):
    net.create("link", "--ipv6", "--subnet", "fe80::/64")
    net.run("one", "--network", "link")
    net.run("two", "--network", "link")
    gateway = net.inspect("one", '{{(index .NetworkSettings.Networks "link").IPv6Gateway}}')
    assert gateway == "fe80::1" and address6(net, "two", "link") == "fe80::3"
    routes = ["nsenter", f"--net={net.sandbox('one')}", "ip", "-6", "route"]
    assert "default via fe80::1 dev eth0" in subprocess.check_output(routes, text=True)
    for address in (gateway, "fe80::3"):
        wait_until(partial(net.pings, "one", f"{address}%eth0"), f"an answer of {address}")
    net.run("other")
    net.daemon.docker("network", "connect", "link", "other")
    assert address6(net, "other", "link").startswith("fe80::")
    net.daemon.docker("restart", "-t", "0", "other")
    assert net.inspect("other", "{{.State.Running}}") == "true"
