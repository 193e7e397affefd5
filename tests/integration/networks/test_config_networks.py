"""Networks that are only a configuration (`--config-only`), and those made from one (`--config-from`)."""

import json
import subprocess

import pytest


@pytest.fixture(autouse=True)
def no_configuration_left(net):
    """Pruning leaves them."""
    yield
    net.daemon.remove_containers()
    net.daemon.docker("network", "prune", "-f")
    net.daemon.docker("network", "rm", "settings", check=False)


def inspected(net, name: str) -> dict:
    return json.loads(net.daemon.docker("network", "inspect", name).stdout)[0]


def test_a_network_is_made_from_a_configuration(net):
    options = ("--subnet", "10.227.0.0/24", "--label", "who=me", "-o", "com.docker.network.driver.mtu=1400")
    net.create("settings", "--config-only", *options)
    shown = inspected(net, "settings")
    assert (shown["ConfigOnly"], shown["Driver"], shown["Scope"]) == (True, "null", "local")
    assert shown["IPAM"]["Config"] == [{"Subnet": "10.227.0.0/24"}]
    assert subprocess.run(["ip", "link", "show", f"br-{shown['Id'][:12]}"], capture_output=True).returncode != 0
    net.create("real", "--config-from", "settings", "--internal")
    shown = inspected(net, "real")
    assert (shown["ConfigFrom"], shown["ConfigOnly"], shown["Driver"]) == ({"Network": "settings"}, False, "bridge")
    assert shown["IPAM"]["Config"] == [{"Subnet": "10.227.0.0/24"}], "as it was asked for"
    assert (shown["Labels"], shown["Internal"]) == ({"who": "me"}, True)
    net.run("one", "--network", "real")
    assert net.address("one", "real") == "10.227.0.2"
    links = subprocess.check_output(["nsenter", f"--net={net.sandbox('one')}", "ip", "link"], text=True)
    assert "mtu 1400" in links


def test_a_configuration_in_use_stays_and_outlives_the_daemon(net):
    net.create("settings", "--config-only", "--subnet", "10.227.0.0/24")
    net.create("real", "--config-from", "settings")
    done = net.daemon.docker("network", "rm", "settings", check=False)
    assert 'configuration network "settings" is in use' in done.stderr
    net.daemon.kill9()
    net.daemon.start()
    assert inspected(net, "settings")["ConfigOnly"] is True
    assert inspected(net, "real")["ConfigFrom"] == {"Network": "settings"}
    net.daemon.docker("network", "prune", "-f")
    assert "settings" in net.daemon.docker("network", "ls", "--format", "{{.Name}}").stdout.split(), "never pruned"
    assert "real" not in net.daemon.docker("network", "ls", "--format", "{{.Name}}").stdout.split()
    net.daemon.docker("network", "rm", "settings")


def test_what_is_refused(net):
    net.create("settings", "--config-only", "--subnet", "10.227.0.0/24")
    for arguments, words in (
        (("--config-only", "--internal", "x"), "can only contain network specific fields"),
        (("--config-from", "nothing", "x"), 'configuration network "nothing" does not exist'),
        (("--config-from", "bridge", "x"), 'configuration network "bridge" does not exist'),
        (("--config-from", "settings", "--subnet", "10.228.0.0/24", "x"), "user specified configurations"),
        (("--config-from", "settings", "-o", "a=b", "x"), "network driver options are not supported"),
    ):
        assert words in net.daemon.docker("network", "create", *arguments, check=False).stderr
    done = net.daemon.docker("run", "--network", "settings", "busybox", "true", check=False)
    assert done.returncode == 125
    assert "configuration-only" in done.stderr
    net.run("one")
    done = net.daemon.docker("network", "connect", "settings", "one", check=False)
    assert "configuration-only" in done.stderr
