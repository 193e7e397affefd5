"""A swarm's networks cut no host off what it reaches another way."""

import json
from collections.abc import Iterator

import pytest

from tests.support.hosts import HostDaemon, Hosts
from tests.support.waiting import until

QUICK = ("--detach", "--no-resolve-image", "--stop-grace-period", "0s", "--restart-condition", "none")
LAN, BEHIND = "10.77.1.0/24", "10.77.3.0/24"


@pytest.fixture(scope="module")
def daemons() -> Iterator[list[HostDaemon]]:
    with Hosts(2) as hosts:
        manager, worker = hosts[0].daemon(), hosts[1].daemon()
        # What the worker has and the manager does not: a network of its own, and one behind a router there.
        hosts[1].run("ip", "link", "add", "lan", "type", "veth", "peer", "name", "lan2")
        hosts[1].run("ip", "address", "add", "10.77.1.5/24", "dev", "lan")
        for name in ("lan", "lan2"):
            hosts[1].run("ip", "link", "set", name, "up")
        hosts[1].run("ip", "route", "add", BEHIND, "via", "10.77.1.1")
        pool = ("--default-addr-pool", "10.77.0.0/16", "--default-addr-pool-mask-length", "24")
        manager.docker("swarm", "init", "--advertise-addr", hosts[0].address, *pool)
        token = manager.docker("swarm", "join-token", "-q", "worker").stdout.strip()
        worker.docker("swarm", "join", "--token", token, hosts[0].address)
        yield [manager, worker]
        for daemon in (worker, manager):
            daemon.remove_containers()
            daemon.docker("swarm", "leave", "--force")
        hosts[1].run("ip", "link", "delete", "lan")
        for daemon in (worker, manager):
            assert daemon.close() == []


def test_subnets_that_a_node_uses_are_avoided(daemons: list[HostDaemon]) -> None:
    manager, _ = daemons
    found = []
    for name in ("one", "two", "three"):
        manager.docker("network", "create", "--driver", "overlay", name)
        found.append(json.loads(manager.docker("network", "inspect", name).stdout)[0]["IPAM"]["Config"][0]["Subnet"])
    assert found == ["10.77.2.0/24", "10.77.4.0/24", "10.77.5.0/24"], "10.77.0.0/24 is that of the ingress network"


@pytest.mark.parametrize("subnet", [LAN, BEHIND])
def test_a_host_refuses_a_network_that_would_cut_it_off(daemons: list[HostDaemon], subnet: str) -> None:
    manager, worker = daemons
    name = "lan" if subnet == LAN else "behind"
    before = worker.where.run("ip", "route")
    manager.docker("network", "create", "--driver", "overlay", "--attachable", "--subnet", subnet, name)
    refused = worker.docker("run", "--rm", "--network", name, "busybox", "true", check=False)
    assert (
        refused.returncode
        and f"its subnet {subnet} overlaps {subnet}, which the host reaches another way" in refused.stderr
    )
    there = ("--constraint", "node.role==worker")
    manager.docker(
        "service", "create", "--name", f"on-{name}", *QUICK, *there, "--network", name, "busybox", "sleep", "60"
    )

    def told() -> bool:
        tasks = manager.docker("service", "ps", "--no-trunc", "--format", "{{.Error}}", f"on-{name}").stdout
        return f"its subnet {subnet} overlaps {subnet}" in tasks

    until(told, "the reason, at the task")
    assert worker.where.run("ip", "route") == before
    # Where nothing is cut off it is a network like another.
    manager.docker("run", "--rm", "--network", name, "busybox", "true")
