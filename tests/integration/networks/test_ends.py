"""The end of a container as others see it: who sees that it ended may count on what it held being free."""

import contextlib
import json
import os
import signal
from collections.abc import Callable

import pytest

from tests.integration.networks.conftest import Network
from tests.support.waiting import until


def _exited(net: Network) -> bool:
    return net.daemon.http("GET", "/containers/short/json").json()["State"]["Status"] == "exited"


def _not_listed(net: Network) -> bool:
    return net.daemon.http("GET", "/containers/json").json() == []


@pytest.mark.parametrize("ended", [_exited, _not_listed])
def test_a_network_can_be_removed_as_soon_as_its_container_is_seen_to_have_ended(
    net: Network, ended: Callable[[Network], bool]
):
    for attempt in range(10):
        net.create(f"brief{attempt}")
        net.daemon.docker("run", "-d", "--name", "short", "--network", f"brief{attempt}", "busybox", "true")
        until(lambda: ended(net), "it ended")
        removed = net.daemon.http("DELETE", f"/networks/brief{attempt}")
        assert removed.status == 204, removed.body
        net.daemon.docker("rm", "short")


def _attached(net: Network, network: str) -> None:
    net.daemon.docker("run", "--name", "short", "--network", network, "busybox", "echo", "hi")
    net.daemon.docker("rm", "short")


def _removed(net: Network, network: str) -> None:
    net.daemon.docker("run", "--rm", "--network", network, "busybox", "echo", "hi")


def _waited_for(net: Network, network: str) -> None:
    net.daemon.docker("run", "-d", "--name", "short", "--network", network, "busybox", "true")
    assert net.daemon.http("POST", "/containers/short/wait").json()["StatusCode"] == 0
    net.daemon.docker("rm", "short")


def _died(net: Network, network: str) -> None:
    """Told by the event of its end."""
    events = net.daemon.connection(30)
    with contextlib.closing(events):
        events.request("GET", '/events?filters={"event":["die"]}')
        told = events.getresponse()
        net.daemon.docker("run", "-d", "--name", "short", "--network", network, "busybox", "true")
        assert json.loads(told.readline())["Action"] == "die"
        removed = net.daemon.http("DELETE", f"/networks/{network}")
        assert removed.status == 204, removed.body
    net.daemon.docker("rm", "short")
    net.create(network)


@pytest.mark.parametrize("seen", [_attached, _removed, _waited_for, _died])
def test_a_network_can_be_removed_as_soon_as_its_container_is_told_to_have_ended(
    net: Network, seen: Callable[[Network, str], None]
):
    for attempt in range(8):
        net.create(f"told{attempt}")
        seen(net, f"told{attempt}")
        removed = net.daemon.http("DELETE", f"/networks/told{attempt}")
        assert removed.status == 204, removed.body


def test_a_stop_while_the_end_is_on_its_way_is_not_undone_by_the_restart_policy(net: Network):
    for _ in range(10):
        container = net.run("stubborn", "--restart", "always", "--stop-signal", "KILL")
        os.kill(int(net.inspect(container, "{{.State.Pid}}")), signal.SIGKILL)
        assert net.daemon.http("POST", f"/containers/{container}/stop?t=5").status in (204, 304)
        assert net.inspect(container, "{{.State.Status}}") == "exited"
        net.daemon.docker("rm", "stubborn")
