"""A daemon with `--bridge none`: no default network, and everything else as usual."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.networks.conftest import Network, refused
from tests.support.daemon import Daemon


@pytest.fixture
def bare() -> Iterator[Network]:
    with Daemon("--bridge", "none", choose_subnet=True) as daemon:
        yield Network(daemon)


def test_without_a_default_network_a_container_has_itself_alone(bare: Network):
    daemon = bare.daemon
    assert {network["Name"] for network in daemon.http("GET", "/networks").json()} == {"host", "none"}
    assert not Path("/sys/class/net", daemon.config.bridge_name).exists()
    bare.run("alone", "-p", "80")
    assert (bare.address("alone"), daemon.docker("port", "alone").stdout) == ("", "")
    inside = daemon.docker("exec", "alone", "ip", "addr").stdout
    assert "127.0.0.1/8" in inside and "eth0" not in inside
    assert daemon.docker("run", "--rm", "--network", "bridge", "busybox", "echo", "hi").stdout == "hi\n"
    assert "unable to derive the IP value for host-gateway" in refused(
        bare, "run", "--add-host", "x:host-gateway", "busybox", "true"
    )
    assert "predefined bridge network" in refused(bare, "network", "create", "bridge")


def test_other_networks_work_without_it(bare: Network):
    bare.create("mine")
    bare.run("one", "--network", "mine")
    bare.run("two")
    bare.daemon.docker("network", "connect", "mine", "two")
    assert bare.pings("two", bare.address("one", "mine"))
    assert "one" in bare.daemon.docker("exec", "two", "nslookup", "one").stdout
    bare.daemon.kill9()
    bare.daemon.start()
    assert bare.pings("two", bare.address("one", "mine"))
    bare.daemon.docker("rm", "-f", "one", "two")
    bare.daemon.docker("network", "rm", "mine")


def test_the_default_network_goes_and_comes_with_the_setting(bare: Network):
    daemon = bare.daemon
    bare.run("stays")
    daemon.stop()
    daemon.arguments = ()
    daemon.start()
    assert {network["Name"] for network in daemon.http("GET", "/networks").json()} == {"bridge", "host", "none"}
    daemon.docker("restart", "-t", "0", "stays")
    assert bare.address("stays") != ""
    daemon.docker("rm", "-f", "stays")
    daemon.stop()
    daemon.arguments = ("--bridge", "none")
    daemon.start()
    assert not Path("/sys/class/net", daemon.config.bridge_name).exists()
