"""A bridge that somebody deletes is made again when a container misses it, with all that was on it."""

import os
import subprocess

import pytest

from tests.integration.networks.conftest import Network, address6, bridge, reach, serving
from tests.support.waiting import wait_until

# While a bridge is away its subnet looks free: no daemon beside this one may choose it then.
OWN = f"10.199.{os.environ.get('PYTEST_XDIST_WORKER', 'gw0').removeprefix('gw')}.0/24"


def delete(interface: str) -> None:
    subprocess.run(["ip", "link", "delete", interface], check=True)


def on_bridge(interface: str) -> str:
    return subprocess.run(["ip", "-o", "link", "show", "master", interface], capture_output=True, text=True).stdout


@pytest.fixture
def name(net: Network, request: pytest.FixtureRequest) -> str:
    """The default network, or one of a user."""
    if request.param != "bridge":
        net.create("mine", "--ipv6", "--subnet", OWN)
    return request.param


@pytest.mark.parametrize("name", ["bridge", "mine"], indirect=True)
def test_the_next_container_finds_it_again(net, name, outside):
    interface = net.daemon.config.bridge_name if name == "bridge" else bridge(net, "mine")
    net.run("before", "--network", name, "-p", "8080")
    old = net.address("before", name)
    with serving(net.sandbox("before"), 8080):
        delete(interface)
        net.run("after", "--network", name)
        assert net.pings("after", old), "who ran already is on it again"
        gateway = net.inspect("after", f'{{{{(index .NetworkSettings.Networks "{name}").Gateway}}}}')
        assert gateway and net.pings("after", gateway)
        assert net.pings("after", outside.address)
        assert reach("127.0.0.1", net.port("before", "8080")) == gateway
    if name == "mine":
        wait_until(lambda: net.pings("after", address6(net, "before", "mine")), "an answer over IPv6")
    assert "was deleted: making it again" in net.daemon.log()


def test_connecting_a_running_container_finds_it_again(net):
    net.create("mine", "--subnet", OWN)
    net.run("there", "--network", "mine")
    net.run("newcomer")
    delete(bridge(net, "mine"))
    net.daemon.docker("network", "connect", "mine", "newcomer")
    assert net.pings("newcomer", net.address("there", "mine"))
    assert on_bridge(bridge(net, "mine")).count("\n") >= 2


def test_a_restart_of_the_container_finds_it_again(net):
    net.run("one")
    delete(net.daemon.config.bridge_name)
    net.daemon.docker("restart", "-t", "0", "one")
    assert net.pings("one", net.gateway)


def test_one_that_somebody_else_made_in_its_place_is_used(net):
    net.run("before")
    interface = net.daemon.config.bridge_name
    delete(interface)
    subprocess.run(["ip", "link", "add", interface, "type", "bridge"], check=True)
    net.run("after")
    assert net.pings("before", net.gateway) and net.pings("after", net.address("before"))
    # Ours again: it is no bridge of the administrator's that would have to stay.
    subprocess.run(["ip", "link", "delete", interface], check=True)
    net.run("last")
    assert net.pings("last", net.address("before"))
