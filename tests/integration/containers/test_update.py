"""`docker update`: limits and restart policy of a container that exists."""

import os
import signal
from typing import Any

import pytest

from husk.kernel import cgroups
from tests.support.daemon import Answer, Daemon
from tests.support.waiting import until

MIB = 1 << 20


def update(daemon: Daemon, name: str, **fields: Any) -> Answer:
    return daemon.http("POST", f"/containers/{name}/update", fields)


def host_config(daemon: Daemon, name: str) -> dict[str, Any]:
    return daemon.http("GET", f"/containers/{name}/json").json()["HostConfig"]


def limit(daemon: Daemon, name: str, controller: str, v1: str, v2: str) -> str:
    """Return the kernel's limit for the container."""
    container_id = daemon.http("GET", f"/containers/{name}/json").json()["Id"]
    path = f"{daemon.config.cgroup_parent}/{container_id}"
    if cgroups.detect() == "v2":
        return (cgroups.ROOT / path.lstrip("/") / v2).read_text().strip()
    return (cgroups.ROOT / controller / path.lstrip("/") / v1).read_text().strip()


def test_limits_of_a_running_container(daemon: Daemon):
    daemon.docker("run", "-d", "--name", "box", "-m", "64m", "busybox", "sleep", "1000")
    daemon.docker("update", "--memory", "32m", "--pids-limit", "30", "box")
    assert limit(daemon, "box", "memory", "memory.limit_in_bytes", "memory.max") == str(32 * MIB)
    assert limit(daemon, "box", "pids", "pids.max", "pids.max") == "30"
    assert host_config(daemon, "box")["Memory"] == 32 * MIB
    daemon.docker("update", "--memory", "128m", "--memory-swap", "256m", "--pids-limit", "-1", "box")
    assert limit(daemon, "box", "memory", "memory.limit_in_bytes", "memory.max") == str(128 * MIB)
    assert limit(daemon, "box", "pids", "pids.max", "pids.max") == "max"


def test_processors(daemon: Daemon):
    daemon.docker("run", "-d", "--name", "box", "busybox", "sleep", "1000")
    daemon.docker("update", "--cpu-shares", "512", "--cpus", "0.5", "--cpuset-cpus", "0", "box")
    found = host_config(daemon, "box")
    assert (found["CpuShares"], found["NanoCpus"], found["CpusetCpus"]) == (512, 500_000_000, "0")
    if cgroups.detect() != "v2":
        assert limit(daemon, "box", "cpu", "cpu.shares", "") == "512"
        assert limit(daemon, "box", "cpu", "cpu.cfs_quota_us", "") == "50000"
    assert limit(daemon, "box", "cpuset", "cpuset.cpus", "cpuset.cpus") == "0"
    answer = update(daemon, "box", CpuPeriod=50000)
    assert answer.status == 409
    assert answer.message.endswith("CPU Period cannot be updated as NanoCPUs has already been set")


def test_a_stopped_container_has_the_limits_at_its_next_start(daemon: Daemon):
    daemon.docker("create", "--name", "box", "-m", "64m", "busybox", "sleep", "1000")
    assert update(daemon, "box", Memory=32 * MIB).json() == {"Warnings": None}
    daemon.docker("start", "box")
    assert limit(daemon, "box", "memory", "memory.limit_in_bytes", "memory.max") == str(32 * MIB)


def test_what_is_fixed_at_creation_is_taken_and_stays(daemon: Daemon):
    daemon.docker("run", "-d", "--name", "box", "busybox", "sleep", "1000")
    limits = [{"Name": "nofile", "Soft": 100, "Hard": 200}]
    answer = update(daemon, "box", Ulimits=limits, Memory=64 * MIB, MemorySwap=-1)
    assert answer.status == 200, answer.body
    assert answer.json()["Warnings"] == ["Ulimits is fixed when a container is created: the update does not change it"]
    found = host_config(daemon, "box")
    assert (found["Ulimits"] or [], found["Memory"]) == ([], 64 * MIB)
    assert update(daemon, "box", CgroupParent="/elsewhere").status == 200
    assert host_config(daemon, "box")["CgroupParent"] == ""


def test_it_is_remembered(fresh_daemon: Daemon):
    fresh_daemon.docker("run", "-d", "--name", "box", "-m", "64m", "busybox", "sleep", "1000")
    fresh_daemon.docker("update", "--memory", "32m", "--restart", "always", "box")
    fresh_daemon.kill9()
    fresh_daemon.start()
    found = host_config(fresh_daemon, "box")
    assert (found["Memory"], found["RestartPolicy"]["Name"]) == (32 * MIB, "always")
    fresh_daemon.docker("rm", "-f", "box")


def test_a_restart_policy_counts_from_now_on(daemon: Daemon):
    daemon.docker("run", "-d", "--name", "box", "busybox", "sleep", "1000")
    daemon.docker("update", "--restart", "on-failure:2", "box")
    os.kill(int(daemon.docker("inspect", "-f", "{{.State.Pid}}", "box").stdout), signal.SIGKILL)
    until(lambda: daemon.docker("inspect", "-f", "{{.RestartCount}}", "box").stdout.strip() != "0", "it restarted")


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"Memory": 1000}, 400, "Minimum memory limit allowed is 6MB"),
        ({"Memory": 512 * MIB}, 409, "update the memoryswap at the same time"),
        ({"CpusetCpus": "77"}, 400, "Requested CPUs are not available"),
        ({"RestartPolicy": {"Name": "bogus"}}, 400, "invalid restart policy"),
        ({"Memory": "x"}, 400, "invalid JSON"),
    ],
)
def test_refused(daemon: Daemon, fields: dict[str, Any], status: int, words: str):
    daemon.docker("create", "--name", "box", "-m", "64m", "busybox")
    answer = update(daemon, "box", **fields)
    assert (answer.status, words in answer.message) == (status, True), answer.message
    assert host_config(daemon, "box")["Memory"] == 64 * MIB


def test_a_container_that_goes_away_by_itself_cannot_restart(daemon: Daemon):
    daemon.docker("create", "--rm", "--name", "box", "busybox")
    answer = update(daemon, "box", RestartPolicy={"Name": "always"})
    assert answer.status == 409 and "AutoRemove is enabled" in answer.message
    assert update(daemon, "nobody").status == 404
    assert daemon.http("POST", "/containers/box/update").status == 200, "nothing to do, as with dockerd 28"
