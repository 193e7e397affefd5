"""Containers on networks that users made: with addresses of choice, on several at once, coming and going."""

import contextlib
import json
import os
import re
import subprocess
from pathlib import Path

from tests.integration.networks.conftest import inside, network, reach, refused, routes, serving
from tests.support.free_ports import free_port


def test_address_and_mac_of_choice(net):
    net.create("fixed", "--subnet", "10.224.0.0/24")
    # The next address is one that waits in the warm pool after this:
    net.run("first", "--network", "fixed")
    for address in ("10.224.0.3", "10.224.0.4", "10.224.0.77"):
        mac = f"02:00:00:00:00:{address.rpartition('.')[2].zfill(2)}"
        name = "c" + address.replace(".", "-")
        net.run(name, "--network", "fixed", "--ip", address, "--mac-address", mac)
        assert net.address(name, "fixed") == address
        shown = inside(net.sandbox(name), lambda: subprocess.check_output(["busybox", "ip", "link"], text=True))
        assert mac in shown
        assert net.pings("first", address)
    assert "Address already in use" in refused(
        net, "run", "--network", "fixed", "--ip", "10.224.0.77", "busybox", "true"
    )
    net.create("loose")
    assert "only when connecting to networks with user configured subnets" in refused(
        net, "run", "--network", "loose", "--ip", "10.1.1.1", "busybox", "true"
    )


def test_several_networks_from_the_start(net):
    net.create("aaa")
    net.create("zzz")
    net.run("both", "--network", "zzz", "--network", "aaa")
    net.run("left", "--network", "aaa")
    net.run("right", "--network", "zzz")
    assert net.pings("both", net.address("left", "aaa"))
    assert net.pings("both", net.address("right", "zzz"))
    assert not net.pings("left", net.address("right", "zzz"), seconds=1)
    gateway = network(net, "aaa")["IPAM"]["Config"][0]["Gateway"]
    assert f"default via {gateway}" in routes(net, "both"), "the first by name"
    hosts = net.daemon.docker("exec", "both", "cat", "/etc/hosts").stdout
    assert net.address("both", "aaa") in hosts and net.address("both", "zzz") in hosts
    net.run("other", "--network", "name=aaa", "--network", "name=zzz,gw-priority=5")
    gateway = network(net, "zzz")["IPAM"]["Config"][0]["Gateway"]
    assert f"default via {gateway}" in routes(net, "other")


def test_connecting_and_disconnecting_while_it_runs(net):
    net.create("extra", "--subnet", "10.217.0.0/24")
    net.run("mover")
    net.run("peer", "--network", "extra")
    net.daemon.docker("network", "connect", "--ip", "10.217.0.9", "--alias", "nick", "extra", "mover")
    assert net.address("mover", "extra") == "10.217.0.9"
    assert net.pings("mover", net.address("peer", "extra"))
    assert net.pings("mover", net.gateway), "the old network is still there"
    assert "10.217.0.9\t" in net.daemon.docker("exec", "mover", "cat", "/etc/hosts").stdout
    assert {c["Name"] for c in network(net, "extra")["Containers"].values()} == {"mover", "peer"}
    assert "already exists in network extra" in refused(net, "network", "connect", "extra", "mover")
    net.daemon.docker("network", "disconnect", "bridge", "mover")
    assert "default via 10.217.0.1 dev eth1" in routes(net, "mover")
    net.daemon.docker("network", "disconnect", "extra", "mover")
    assert routes(net, "mover") == ""
    assert "10.217" not in net.daemon.docker("exec", "mover", "cat", "/etc/hosts").stdout
    assert "is not connected to network extra" in refused(net, "network", "disconnect", "extra", "mover")
    net.daemon.docker("network", "connect", "extra", "mover")
    assert net.pings("mover", net.address("peer", "extra"))
    net.daemon.docker("restart", "-t", "0", "mover")
    assert json.loads(net.inspect("mover", "{{json .NetworkSettings.Networks}}")).keys() == {"extra"}
    assert net.pings("mover", net.address("peer", "extra"))


def test_leaving_a_network_when_there_is_no_way_to_the_next_gateway(net):
    net.create("aaa")
    net.create("zzz")
    net.run("stray", "--network", "aaa", "--network", "zzz", "--cap-add", "NET_ADMIN")
    net.daemon.docker("exec", "stray", "ip", "link", "set", "eth1", "down")
    left = net.daemon.http("POST", "/networks/aaa/disconnect", {"Container": "stray"})
    assert left.status == 200, left.body
    assert list(json.loads(net.inspect("stray", "{{json .NetworkSettings.Networks}}"))) == ["zzz"]
    assert "eth0" not in net.daemon.docker("exec", "stray", "ip", "link").stdout
    net.daemon.kill9()
    net.daemon.start()
    assert net.inspect("stray", "{{.State.Status}}") == "running"


def test_connecting_with_everything_of_choice(net, outside):
    net.create("extra", "--subnet", "10.217.0.0/24")
    net.run("mover", "-p", f"{free_port()}:80")
    options = ["--ip", "10.217.0.9", "--gw-priority", "7", "--alias", "nick"]
    options += ["--driver-opt", "com.docker.network.endpoint.ifname=lan0"]
    net.daemon.docker("network", "connect", *options, "extra", "mover")
    assert "default via 10.217.0.1 dev lan0" in routes(net, "mover"), "the priority decides, not the name"
    settings = json.loads(net.inspect("mover", "{{json .NetworkSettings.Networks.extra}}"))
    assert (settings["IPAddress"], settings["GwPriority"]) == ("10.217.0.9", 7)
    with serving(net.sandbox("mover"), 80):
        assert reach(outside.host, net.port("mover", "80/tcp"), outside.namespace) == outside.address
    net.daemon.docker("network", "disconnect", "extra", "mover")
    body = {"Container": "mover", "EndpointConfig": {"MacAddress": "02:00:00:00:00:42", "GwPriority": -1}}
    assert net.daemon.http("POST", "/networks/extra/connect", body).status == 200
    shown = inside(net.sandbox("mover"), lambda: subprocess.check_output(["busybox", "ip", "link"], text=True))
    assert "02:00:00:00:00:42" in shown
    assert f"default via {net.gateway}" in routes(net, "mover")
    net.daemon.kill9()
    net.daemon.start()
    assert f"default via {net.gateway}" in routes(net, "mover")
    net.daemon.docker("network", "disconnect", "-f", "extra", "mover")
    assert net.pings("mover", outside.address)


def test_link_local_addresses(net):
    net.create("extra", "--subnet", "10.217.0.0/24")
    net.run("one", "--network", "extra", "--link-local-ip", "169.254.7.1", "--link-local-ip", "fe80::7:1")
    net.run("two")
    net.daemon.docker("network", "connect", "--link-local-ip", "169.254.7.2", "extra", "two")
    assert net.pings("two", "169.254.7.1")
    shown = inside(net.sandbox("one"), lambda: subprocess.check_output(["busybox", "ip", "addr"], text=True))
    assert "169.254.7.1/16" in shown
    assert not Path("/proc/sys/net/ipv6").exists() or "fe80::7:1/64" in shown
    assert "invalid link-local IP address: 10.0.0.1" in refused(
        net, "network", "connect", "--link-local-ip", "10.0.0.1", "extra", "two"
    )


def test_what_runs_without_a_network_stays_without_one_when_it_is_refused(net):
    net.run("alone")
    net.create("extra")
    net.daemon.docker("network", "disconnect", "bridge", "alone")
    net.daemon.docker("restart", "-t0", "alone")
    assert "runs without a network of its own" in refused(net, "network", "connect", "extra", "alone")
    assert net.inspect("alone", "{{json .NetworkSettings.Networks}}") == "{}"


def test_connecting_and_disconnecting_while_it_is_stopped(net):
    net.create("later", "--subnet", "10.218.0.0/24")
    net.daemon.docker("create", "--name", "sleeper", "busybox", "sleep", "1000")
    net.daemon.docker("network", "connect", "--ip", "10.218.0.5", "later", "sleeper")
    net.daemon.docker("network", "disconnect", "bridge", "sleeper")
    net.daemon.docker("start", "sleeper")
    assert net.address("sleeper", "later") == "10.218.0.5"
    assert json.loads(net.inspect("sleeper", "{{json .NetworkSettings.Networks}}")).keys() == {"later"}


def test_published_ports_follow_the_container(net, outside):
    net.create("first")
    net.create("second")
    net.run("web", "--network", "first", "-p", "80")
    port = net.port("web", "80/tcp")
    with serving(net.sandbox("web"), 80):
        net.daemon.docker("network", "connect", "second", "web")
        assert reach("127.0.0.1", port) != ""
        net.daemon.docker("network", "disconnect", "first", "web")
        assert reach("127.0.0.1", port) != ""
        assert reach(outside.host, port, outside.namespace) == outside.address
        assert net.port("web", "80/tcp") == port


def test_sharing_the_network_of_a_container(net):
    net.create("home")
    net.run("host-of-it", "--network", "home", "-p", "80", "--hostname", "shared")
    net.run("guest", "--network", "container:host-of-it")
    assert net.inspect("guest", "{{json .NetworkSettings.Networks}}") == "{}"
    for file in ("/etc/hosts", "/etc/resolv.conf", "/etc/hostname"):
        seen = [net.daemon.docker("exec", name, "cat", file).stdout for name in ("guest", "host-of-it")]
        assert seen[0] == seen[1] != ""
    links = [net.daemon.docker("exec", name, "ip", "-o", "addr").stdout for name in ("guest", "host-of-it")]
    assert links[0] == links[1]
    assert "conflicting options: port publishing" in refused(
        net, "run", "--network", "container:guest", "-p", "80", "busybox", "true"
    )
    assert "No such container: nobody" in refused(net, "run", "--network", "container:nobody", "busybox", "true")
    net.daemon.docker("stop", "-t", "0", "host-of-it")
    message = refused(net, "run", "--network", "container:host-of-it", "busybox", "true")
    assert "cannot join network namespace of a non running container" in message
    assert "cannot be connected to any other network" in refused(net, "network", "connect", "home", "guest")


def test_sharing_the_network_of_a_guest(net):
    net.create("home")
    net.run("owner", "--network", "home")
    net.run("guest", "--network", "container:owner")
    net.run("second-guest", "--network", "container:guest")
    seen = [net.daemon.docker("exec", name, "cat", "/etc/hosts").stdout for name in ("owner", "second-guest")]
    assert seen[0] == seen[1]


def test_a_guest_shares_its_network_on_though_its_host_has_ended(net):
    net.run("owner")
    net.run("guest", "--network", "container:owner")
    net.daemon.docker("stop", "-t0", "owner")
    own = net.daemon.docker("exec", "guest", "readlink", "/proc/self/ns/net").stdout
    command = ["busybox", "readlink", "/proc/self/ns/net"]
    assert net.daemon.docker("run", "--rm", "--network", "container:guest", *command).stdout == own


def test_the_last_addresses_are_not_kept_by_warm_sandboxes(net):
    net.create("tiny", "--subnet", "10.225.0.0/29")
    net.run("first", "--network", "tiny")
    for number in range(4):
        net.run(f"other{number}")
        net.daemon.docker("network", "connect", "tiny", f"other{number}")
    assert "no available IPv4 addresses" in refused(net, "run", "--network", "tiny", "busybox", "true")


def test_networks_of_no_use_to_each_other(net):
    net.run("alone", "--network", "none")
    net.create("some")
    assert "private (none) mode" in refused(net, "network", "connect", "some", "alone")
    assert "container must be created in host network mode" in refused(net, "network", "connect", "host", "alone")
    assert "network unknown not found" in refused(net, "run", "--network", "unknown", "busybox", "true")


def test_events(net):
    with contextlib.closing(net.daemon.sdk()) as client:
        stream = client.events(decode=True, filters={"type": "network"})
        net.create("seen")
        net.run("one", "--network", "seen")
        net.daemon.docker("rm", "-f", "one")
        net.daemon.docker("network", "rm", "seen")
        seen = []
        for event in stream:
            seen.append(event)
            if event["Action"] == "destroy":
                break
        stream.close()
    assert [event["Action"] for event in seen] == ["create", "connect", "disconnect", "destroy"]
    assert all(event["Actor"]["Attributes"]["name"] == "seen" for event in seen)
    assert all(event["Actor"]["Attributes"]["type"] == "bridge" for event in seen)
    assert "container" in seen[1]["Actor"]["Attributes"]


def test_what_cannot_be_is_told_as_dockerd_does(net):
    ifname = "com.docker.network.endpoint.ifname"
    net.create("mine")
    net.create("other")
    net.run("on-host", "--network", "host")
    net.run("box", "--network", f"name=mine,driver-opt={ifname}=foo0")

    def asked(verb: str, network: str, container: str, **config: object) -> tuple[int, str]:
        body = {"Container": container, "EndpointConfig": config}
        answer = net.daemon.http("POST", f"/networks/{network}/{verb}", body)
        return answer.status, answer.message if answer.body else ""

    said = "cannot disconnect container from host network - container was created in host network mode"
    assert asked("disconnect", "host", "on-host") == (400, said)
    # One that does not run is let go, and starts on the host all the same.
    net.daemon.docker("create", "--name", "let-go", "--network", "host", "busybox", "readlink", "/proc/self/ns/net")
    assert asked("disconnect", "host", "let-go") == (200, "")
    assert net.daemon.http("GET", "/containers/let-go/json").json()["NetworkSettings"]["Networks"] == {}
    assert asked("disconnect", "host", "let-go")[0] == 403
    assert net.daemon.docker("start", "-a", "let-go").stdout.strip() == os.readlink("/proc/self/ns/net")
    assert asked("connect", "mine", "box") == (403, "endpoint with name box already exists in network mine")
    assert asked("connect", "host", "box")[0] == asked("connect", "mine", "on-host")[0] == 400
    status, message = asked("connect", "other", "box", DriverOpts={ifname: "foo0"})
    assert status == 409 and re.fullmatch(
        r'failed to add interface (\w+) to sandbox: error renaming interface "\1" to "foo0": file exists', message
    )
    # Nothing of it is left: neither the address nor the place.
    assert asked("connect", "other", "box", DriverOpts={ifname: ""}) == (200, "")
    assert net.address("box", "other") == next(iter(network(net, "other")["Containers"].values()))["IPv4Address"][:-3]
    both = [option for name in ("mine", "other") for option in ("--network", f"name={name},driver-opt={ifname}=eth7")]
    said = refused(net, "run", "--name", "twice", *both, "busybox", "true")
    assert "failed to set up container networking: failed to add interface" in said and '"eth7": file exists' in said
    # What is wrong with a setting of the interface is told, and leaves nothing.
    net.daemon.docker("network", "disconnect", "other", "box")
    for setting in ("nonsense=1", "mtu=x"):
        opts = {"com.docker.network.endpoint.sysctls": f"net.ipv6.conf.IFNAME.{setting}"}
        status, message = asked("connect", "other", "box", DriverOpts=opts)
        assert status == 400 and "failed to set interface sysctl net.ipv6.conf.eth0." in message
    links = net.daemon.docker("exec", "box", "ls", "/sys/class/net").stdout.split()
    assert links == ["foo0", "lo"] and not network(net, "other")["Containers"]
    for name, expected in (("lo", 409), ("all", 400), ("default", 400)):
        options = {"com.docker.network.bridge.name": name}
        assert net.daemon.http("POST", "/networks/create", {"Name": "odd", "Options": options}).status == expected
    for mac in ("ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01", "00:00:00:00:00:00"):
        assert asked("connect", "other", "on-host", MacAddress=mac)[0] == 400
    assert asked("disconnect", "mine", "nobody")[0] == 404
