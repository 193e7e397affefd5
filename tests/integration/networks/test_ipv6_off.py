"""IPv6 switched off in a container on a network that has it: no address is kept for it, told of it or named."""

import pytest

from tests.integration.networks.conftest import Network, address6, network, refused

DISABLED = "conf.IFNAME.disable_ipv6=1"


@pytest.mark.parametrize(
    "options",
    [
        ("--network", "both", "--sysctl", "net.ipv6.conf.all.disable_ipv6=1"),
        ("--network", "both", "--sysctl", "net.ipv6.conf.eth0.disable_ipv6=1"),
        # The client makes small letters of it.
        ("--network", f"name=both,driver-opt=com.docker.network.endpoint.sysctls=net.ipv6.{DISABLED}"),
    ],
)
def test_without_ipv6_in_the_container_it_has_no_address(net: Network, options: tuple[str, ...]):
    net.create("both", "--ipv6")
    net.run("four", *options)
    net.run("asking", "--network", "both")
    assert (address6(net, "four", "both"), net.inspect("four", "{{.NetworkSettings.Networks.both.IPv6Gateway}}")) == (
        "",
        "",
    )
    assert address6(net, "asking", "both") != ""
    shown = {member["Name"]: member["IPv6Address"] for member in network(net, "both")["Containers"].values()}
    assert shown["four"] == "" and shown["asking"] != ""
    hosts = net.daemon.docker("exec", "four", "cat", "/etc/hosts").stdout
    assert [line for line in hosts.splitlines() if line.endswith(net.inspect("four", "{{.Config.Hostname}}"))] == [
        f"{net.address('four', 'both')}\t{net.inspect('four', '{{.Config.Hostname}}')}"
    ]
    answer = net.daemon.docker("exec", "asking", "nslookup", "four").stdout
    assert net.address("four", "both") in answer
    assert answer.count("Address: ") == 1
    assert "global" not in net.daemon.docker("exec", "four", "ip", "-6", "addr").stdout


def test_with_ipv6_off_everywhere_hosts_names_no_such_address(net: Network):
    net.create("both", "--ipv6")
    net.run("four", "--network", "both", "--sysctl", "net.ipv6.conf.all.disable_ipv6=1")
    assert ":" not in net.daemon.docker("exec", "four", "cat", "/etc/hosts").stdout
    net.create("later", "--ipv6")
    net.daemon.docker("network", "connect", "later", "four")
    assert address6(net, "four", "later") == ""


def test_a_setting_of_an_interface_may_be_written_in_small_letters(net: Network):
    net.create("extra")
    option = "com.docker.network.endpoint.sysctls"
    setting = "net.ipv4.conf.{}.log_martians=1"
    for name in ("ifname", "IFNAME"):
        body = {
            "Image": "busybox",
            "Cmd": ["cat", "/proc/sys/net/ipv4/conf/eth0/log_martians"],
            "HostConfig": {"NetworkMode": "extra"},
            "NetworkingConfig": {"EndpointsConfig": {"extra": {"DriverOpts": {option: setting.format(name)}}}},
        }
        assert net.daemon.http("POST", f"/containers/create?name=reads-{name}", body).status == 201
        assert net.daemon.docker("start", "-a", f"reads-{name}").stdout == "1\n"
    mixed = f"name=extra,driver-opt={option}={setting.format('eth0')}"
    assert "unrecognised network interface sysctl" in refused(net, "run", "--network", mixed, "busybox", "true")
