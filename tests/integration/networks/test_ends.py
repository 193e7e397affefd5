"""The end of a container as others see it: who sees that it ended may count on what it held being free."""

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


def test_a_stop_while_the_end_is_on_its_way_is_not_undone_by_the_restart_policy(net: Network):
    for _ in range(10):
        container = net.run("stubborn", "--restart", "always", "--stop-signal", "KILL")
        os.kill(int(net.inspect(container, "{{.State.Pid}}")), signal.SIGKILL)
        assert net.daemon.http("POST", f"/containers/{container}/stop?t=5").status in (204, 304)
        assert net.inspect(container, "{{.State.Status}}") == "exited"
        net.daemon.docker("rm", "stubborn")
