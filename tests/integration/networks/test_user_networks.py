"""Networks that users make: what may be made, who reaches whom, and what a crash leaves of them."""

import json
import socket
import subprocess
from pathlib import Path

import pytest

from husk.kernel import rtnetlink
from husk.kernel.netlink import NetlinkSocket
from tests.integration.networks.conftest import Network, bridge, inside, network, reach, refused, routes, serving
from tests.integration.networks.test_default_bridge_settings import machine_on
from tests.support.free_ports import free_port
from tests.support.waiting import wait_until

# --- making and removing


def test_a_network_is_as_it_was_asked_for(net):
    options = ["--subnet", "10.213.0.0/16", "--ip-range", "10.213.7.0/24", "--gateway", "10.213.7.254"]
    options += ["--aux-address", "printer=10.213.7.1", "--label", "stage=test", "--attachable"]
    options += ["-o", "com.docker.network.bridge.name=hktest-made", "-o", "com.docker.network.driver.mtu=1400"]
    net.create("made", *options)
    found = network(net, "made")
    assert found["IPAM"]["Config"] == [
        {
            "Subnet": "10.213.0.0/16",
            "IPRange": "10.213.7.0/24",
            "Gateway": "10.213.7.254",
            "AuxiliaryAddresses": {"printer": "10.213.7.1"},
        }
    ]
    assert (found["Driver"], found["Scope"], found["Internal"], found["Attachable"]) == ("bridge", "local", False, True)
    assert found["Labels"] == {"stage": "test"}
    net.run("one", "--network", "made")
    net.run("two", "--network", "made")
    addresses = [net.address(name, "made") for name in ("one", "two")]
    assert addresses == ["10.213.7.0", "10.213.7.2"], "in the range, and not the printer's"
    shown = inside(net.sandbox("one"), lambda: subprocess.check_output(["busybox", "ip", "link"], text=True))
    assert "mtu 1400" in shown
    assert "hktest-made" in {name for _, name in socket.if_nameindex()}
    assert net.pings("one", "10.213.7.254")


def test_a_gateway_that_nobody_named_is_shown_from_the_next_start_on(net):
    """As dockerd 28.5 does, which finds it again when it restores the network."""
    net.create("mine", "--subnet", "10.213.1.0/24", "--ipv6", "--subnet", "fd00:213:1::/64")
    asked = [{"Subnet": "10.213.1.0/24"}, {"Subnet": "fd00:213:1::/64"}]
    assert network(net, "mine")["IPAM"]["Config"] == asked
    net.run("one", "--network", "mine")
    assert network(net, "mine")["IPAM"]["Config"] == asked
    assert net.inspect("one", "{{.NetworkSettings.Networks.mine.Gateway}}") == "10.213.1.1"
    net.daemon.restart()
    assert network(net, "mine")["IPAM"]["Config"] == [
        {"Subnet": "10.213.1.0/24", "Gateway": "10.213.1.1"},
        {"Subnet": "fd00:213:1::/64", "Gateway": "fd00:213:1::1"},
    ]


def test_listing_with_filters(net):
    net.create("blue", "--label", "colour=blue")
    net.create("green", "--label", "colour=green")
    net.run("user", "--network", "blue")

    def listed(*filters: str) -> list[str]:
        words = [word for text in filters for word in ("--filter", text)]
        return net.daemon.docker("network", "ls", "--format", "{{.Name}}", *words).stdout.split()

    assert listed() == ["blue", "bridge", "green", "host", "none"]
    assert listed("type=custom") == ["blue", "green"]
    assert listed("type=builtin", "driver=bridge") == ["bridge"]
    assert listed("label=colour=green") == ["green"]
    assert listed("name=re") == ["green"]
    assert listed("dangling=true") == ["green"]
    assert listed("dangling=false") == ["blue", "bridge", "host", "none"]
    assert listed(f"id={network(net, 'blue')['Id'][:10]}") == ["blue"]


def test_what_docker_refuses_is_refused_in_its_words(net):
    net.create("taken", "--subnet", "10.214.0.0/16", "-o", "com.docker.network.bridge.name=hktest-taken")
    create = ("network", "create")
    assert "network with name taken already exists" in refused(net, *create, "taken")
    overlap = "Pool overlaps with other one on this address space"
    assert overlap in refused(net, *create, "--subnet", "10.214.3.0/24", "new")
    assert "networks have same bridge name" in refused(
        net, *create, "-o", "com.docker.network.bridge.name=hktest-taken", "new"
    )
    assert "operation is not permitted on predefined bridge network" in refused(net, *create, "bridge")
    pool = {"Subnet": "10.215.0.0/16", "Gateway": "10.1.0.1"}
    answer = net.daemon.http("POST", "/networks/create", {"Name": "new", "IPAM": {"Config": [pool]}})
    words = "invalid gateway 10.1.0.1: parent subnet 10.215.0.0/16 doesn't contain this address"
    assert (answer.status, words in answer.message) == (400, True)
    assert 'only one instance of "host" network is allowed' in refused(net, *create, "-d", "host", "new")
    assert "plugin" in refused(net, *create, "-d", "no-such-driver", "new")
    assert "IPv4 or IPv6 must be enabled" in refused(net, *create, "--ipv4=false", "new")
    assert "loopback interface is not" in refused(net, *create, "-d", "macvlan", "-o", "parent=lo", "new")
    assert "is a pre-defined network and cannot be removed" in refused(net, "network", "rm", "bridge")
    assert "network nowhere not found" in refused(net, "network", "inspect", "nowhere")
    assert net.daemon.docker("network", "ls", "-q", "--filter", "type=custom").stdout.count("\n") == 1


def test_a_network_in_use_stays(net):
    net.create("busy")
    net.run("user", "--network", "busy")
    assert 'has active endpoints (name:"user"' in refused(net, "network", "rm", "busy")
    assert net.daemon.http("DELETE", "/networks/busy").status == 403
    assert net.daemon.docker("network", "prune", "-f").stdout == ""
    net.daemon.docker("stop", "-t", "0", "user")
    name = bridge(net, "busy")
    net.daemon.docker("network", "rm", "busy")
    assert name not in {link for _, link in socket.if_nameindex()}
    assert "network busy not found" in refused(net, "start", "user")


def test_prune_takes_what_nobody_uses(net):
    net.create("keep", "--label", "keep")
    net.create("drop")
    assert net.daemon.http("POST", '/networks/prune?filters={"label!":["keep"]}').json() == {
        "NetworksDeleted": ["drop"]
    }
    assert net.daemon.http("POST", '/networks/prune?filters={"until":["1h"]}').json() == {"NetworksDeleted": None}
    assert net.daemon.http("POST", "/networks/prune").json() == {"NetworksDeleted": ["keep"]}


def test_subnets_of_unasked_networks_do_not_overlap(net):
    subnets = []
    for number in range(3):
        net.create(f"auto{number}")
        subnets.append(network(net, f"auto{number}")["IPAM"]["Config"][0]["Subnet"])
    assert len(set(subnets)) == 3


# --- who reaches whom


def test_networks_are_apart(net):
    net.create("left")
    net.create("right")
    net.run("one", "--network", "left")
    net.run("two", "--network", "left")
    net.run("far", "--network", "right")
    net.run("plain")
    assert net.pings("one", net.address("two", "left"))
    for network_name, container in (("right", "far"), ("bridge", "plain")):
        assert not net.pings("one", net.address(container, network_name), seconds=1)
        assert not net.pings(container, net.address("one", "left"), seconds=1)


def test_an_internal_network_leads_nowhere(net, outside):
    net.create("vault", "--internal")
    net.run("inner", "--network", "vault")
    net.run("peer", "--network", "vault")
    assert net.pings("inner", net.address("peer", "vault"))
    assert "default" not in routes(net, "inner")
    gateway = network(net, "vault")["IPAM"]["Config"][0]["Gateway"]
    command = ["busybox", "ip", "route", "add", "default", "via", gateway]
    inside(net.sandbox("inner"), lambda: subprocess.run(command, check=True))
    assert not net.pings("inner", outside.address, seconds=1), "not even with a route"
    net.run("outer")
    assert not net.pings("inner", net.address("outer"), seconds=1)


def test_without_icc_containers_reach_the_outside_and_not_each_other(net, outside):
    net.create("shy", "-o", "com.docker.network.bridge.enable_icc=false")
    net.run("one", "--network", "shy")
    net.run("two", "--network", "shy")
    assert not net.pings("one", net.address("two", "shy"), seconds=1)
    assert net.pings("one", outside.address)


def test_without_masquerade_the_outside_sees_the_container(net, outside):
    net.create("bare", "-o", "com.docker.network.bridge.enable_ip_masquerade=false")
    net.run("one", "--network", "bare")
    subnet = network(net, "bare")["IPAM"]["Config"][0]["Subnet"]
    command = ["busybox", "ip", "route", "add", subnet, "via", outside.host]
    inside(outside.namespace, lambda: subprocess.run(command, check=True))
    with serving(outside.namespace, 7000):
        assert reach(outside.address, 7000, net.sandbox("one")) == net.address("one", "bare")


def test_a_network_can_bind_ports_to_one_address(net, outside):
    net.create("local", "-o", "com.docker.network.bridge.host_binding_ipv4=127.0.0.1")
    net.run("web", "--network", "local", "-p", "80")
    port = net.port("web", "80/tcp")
    with serving(net.sandbox("web"), 80):
        assert reach("127.0.0.1", port) != ""
        assert reach(outside.host, port, outside.namespace, seconds=1) == ""


# --- crashes


def test_networks_and_who_is_on_them_outlive_the_daemon(net):
    net.create("first", "--subnet", "10.219.0.0/24")
    net.create("second", "--internal")
    net.run("one", "--network", "first", "--network", "second")
    net.run("two", "--network", "second")
    before = network(net, "first")["Containers"]
    net.daemon.kill9()
    with NetlinkSocket() as netlink:
        netlink.execute(rtnetlink.delete_link("br-" + next(iter(ids(net, "first")))[:12]))
    net.daemon.start()
    assert network(net, "first")["Containers"] == before
    assert net.pings("one", "10.219.0.1"), "the bridge is there again, with its ports"
    assert net.pings("one", net.address("two", "second"))
    net.run("three", "--network", "first")
    assert net.pings("three", net.address("one", "first"))
    net.daemon.docker("rm", "-f", "one", "two", "three")
    net.daemon.docker("network", "rm", "first", "second")


def ids(net: Network, name: str) -> list[str]:
    """Ids of the networks by their bridges, without a daemon to ask."""
    owned = net.daemon._traces.bridges() - {net.daemon.config.bridge_name}
    found = []
    for link in owned:
        shown = subprocess.check_output(["busybox", "ip", "-o", "addr", "show", link], text=True)
        if "10.219.0.1/" in shown:
            found.append(link.removeprefix("br-"))
    return found


def test_the_past_of_a_stopped_container_does_not_disturb_its_successor(net):
    net.create("home", "--subnet", "10.222.0.0/24")
    net.run("old", "--network", "home", "--ip", "10.222.0.9", "-p", "80")
    net.daemon.docker("stop", "-t", "0", "old")
    net.run("new", "--network", "home", "--ip", "10.222.0.9", "-p", "80")
    net.run("peer", "--network", "home")
    net.daemon.kill9()
    net.daemon.start()
    assert net.pings("peer", "10.222.0.9")
    with serving(net.sandbox("new"), 80):
        assert reach("127.0.0.1", net.port("new", "80/tcp")) != ""
    assert "Address already in use" in refused(net, "start", "old")


def test_a_clean_restart_keeps_networks_that_nobody_uses(net):
    net.create("idle", "--subnet", "10.220.0.0/24")
    identity = network(net, "idle")["Id"]
    net.daemon.restart()
    assert network(net, "idle")["Id"] == identity
    net.run("one", "--network", "idle")
    assert net.pings("one", "10.220.0.1")


@pytest.mark.parametrize("moment", [0.0, 0.002, 0.005, 0.01, 0.02, 0.05])
def test_a_crash_at_any_moment_leaves_what_the_next_start_repairs(net, moment):
    net.create("stable")
    # One of its own: while the daemon is down, another one on this host may take what was given at random.
    net.run("anchor", "--network", "stable", "-p", f"{free_port()}:80")
    script = (
        "docker network create doomed; docker network connect doomed anchor; docker network disconnect doomed anchor;"
        "docker run -d --name late --network stable -p 80 busybox sleep 9; docker network rm doomed"
    )
    with subprocess.Popen(["sh", "-c", script], env=net.daemon.environment, stdout=subprocess.PIPE, stderr=-3) as busy:
        assert busy.stdout is not None
        busy.stdout.read(1)
        subprocess.run(["sleep", str(moment)], check=True)
        net.daemon.kill9()
        busy.kill()
    net.daemon.start()
    known = net.daemon.http("GET", "/networks").json()
    bridges = {f"br-{n['Id'][:12]}" for n in known if n["Name"] in ("stable", "doomed")}
    assert net.daemon._traces.bridges() == bridges | {net.daemon.config.bridge_name}
    with serving(net.sandbox("anchor"), 80):
        assert reach("127.0.0.1", net.port("anchor", "80/tcp")) != ""
    connected = json.loads(net.inspect("anchor", "{{json .NetworkSettings.Networks}}"))
    links = inside(net.sandbox("anchor"), lambda: {name for _, name in socket.if_nameindex()})
    assert len(links - {"lo"}) == len(connected)
    net.daemon.remove_containers()
    wait_until(lambda: net.daemon._traces.settle(net.daemon.pid) == [], "nothing is left")


def test_inspect_counts_addresses(net):
    net.create("counted", "--subnet", "10.223.0.0/24", "--ip-range", "10.223.0.128/25", "--aux-address", "x=10.223.0.5")

    def status() -> dict:
        return net.daemon.http("GET", "/v1.52/networks/counted").json()["Status"]["IPAM"]["Subnets"]["10.223.0.0/24"]

    # In use: network and broadcast address, the gateway (the first of the range) and the auxiliary one.
    assert status() == {"IPsInUse": 4, "DynamicIPsAvailable": 126}
    net.run("one", "--network", "counted")
    net.run("two", "--network", "counted", "--ip", "10.223.0.9")
    # What lies ready for the next containers is in nobody's use.
    wait_until(lambda: status() == {"IPsInUse": 6, "DynamicIPsAvailable": 125}, "both count")
    net.daemon.docker("rm", "-f", "one", "two")
    wait_until(lambda: status() == {"IPsInUse": 4, "DynamicIPsAvailable": 126}, "none does")
    assert "Status" not in net.daemon.http("GET", "/v1.51/networks/counted").json()


def test_what_a_stopped_container_had_is_free_at_once(net):
    net.create("fixed", "--subnet", "10.216.0.0/24")
    port = free_port()
    for number in range(10):
        net.run(f"c{number}", "--network", "fixed", "--ip", "10.216.0.7", "-p", f"{port}:80")
        assert net.daemon.http("POST", f"/containers/c{number}/kill").status == 204
        assert net.daemon.http("POST", f"/containers/c{number}/wait").status == 200


def test_a_taken_address_is_told_as_dockerd_does(net):
    net.create("fixed", "--subnet", "10.216.0.0/24")
    net.run("one", "--network", "fixed", "--ip", "10.216.0.7")
    message = "failed to set up container networking: Address already in use"
    assert message in refused(
        net, "run", "--name", "two", "--network", "fixed", "--ip", "10.216.0.7", "busybox", "true"
    )
    assert net.inspect("two", "{{.State.Status}}") == "created"
    assert net.daemon.http("POST", "/containers/two/start").status == 403
    net.run("three")
    answer = net.daemon.http(
        "POST",
        "/networks/fixed/connect",
        {"Container": "three", "EndpointConfig": {"IPAMConfig": {"IPv4Address": "10.216.0.7"}}},
    )
    assert (answer.status, answer.message) == (403, "Address already in use")
    assert list(json.loads(net.inspect("three", "{{json .NetworkSettings.Networks}}"))) == ["bridge"]
    net.daemon.docker("rm", "-f", "one")
    net.daemon.docker("start", "two")


def test_a_bridge_has_the_mtu_of_its_network(net):
    net.create("narrow", "-o", "com.docker.network.driver.mtu=1400")
    net.create("wide", "-o", "com.docker.network.driver.mtu=9000")
    mtus = {name: Path(f"/sys/class/net/{bridge(net, name)}/mtu") for name in ("narrow", "wide")}
    assert [int(mtus[name].read_text()) for name in ("narrow", "wide")] == [1400, 9000]
    net.run("box", "--network", "wide")
    assert int(mtus["wide"].read_text()) == 9000 and "mtu 9000" in net.daemon.docker("exec", "box", "ip", "link").stdout
    net.daemon.restart()
    assert int(mtus["wide"].read_text()) == 9000
    options = {"com.docker.network.driver.mtu": "1000"}
    body = {"Name": "six", "EnableIPv6": True, "Options": options}
    answer = net.daemon.http("POST", "/networks/create", body)
    assert (answer.status, "less than IPv6 needs" in answer.message) == (400, True)


def test_interfaces_may_be_called_otherwise_in_containers(net):
    for name in ("one", "two"):
        net.create(name, "-o", f"com.docker.network.container_iface_prefix={'lan' if name == 'one' else 'wan'}")
    net.run("web", "--network", "one", "--network", "two")
    net.create("three")
    net.daemon.docker("network", "connect", "three", "web")
    shown = inside(net.sandbox("web"), socket.if_nameindex)
    assert {name for _, name in shown} == {"lo", "lan0", "wan0", "eth0"}
    assert "default via " in routes(net, "web")
    for prefix in ("a/b", "x" * 12, "%d", "1"):
        said = refused(net, "network", "create", "-o", f"com.docker.network.container_iface_prefix={prefix}", "odd")
        assert "invalid value for com.docker.network.container_iface_prefix" in said


def test_a_gateway_may_be_another_machine_on_the_bridge(net):
    """`inhibit_ipv4`: containers have their way by it, and the host has no address there."""
    inhibit = "com.docker.network.bridge.inhibit_ipv4"
    net.create("silent", "-o", f"{inhibit}=true", "--subnet", "10.219.9.0/24")
    net.run("box", "--network", "silent")
    host = subprocess.check_output(["ip", "-4", "address", "show", "dev", bridge(net, "silent")], text=True)
    assert host == "" and net.address("box", "silent") == "10.219.9.2"
    assert "default via 10.219.9.1 dev eth0" in routes(net, "box")
    with machine_on(bridge(net, "silent"), net.daemon.directory / "gateway", "10.219.9.1/24"):
        assert net.pings("box", "10.219.9.1")
    answer = net.daemon.http("POST", "/networks/create", {"Name": "odd", "Options": {inhibit: "maybe"}})
    said = f'failed to parse {inhibit} value: maybe (strconv.ParseBool: parsing "maybe": invalid syntax)'
    assert (answer.status, answer.message) == (400, said)
