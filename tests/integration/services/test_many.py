"""Services of more tasks than can be: the engine stays an engine."""

import os
import threading
from pathlib import Path

import pytest

from tests.support.swarm import FOREVER, Swarm
from tests.support.waiting import until

MILLION = 10**6


def resident(pid: int) -> int:
    """Bytes of memory that a process has."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_million_replicas_cost_little_and_the_api_answers_meanwhile(swarm: Swarm) -> None:
    daemon = swarm.daemon
    before = resident(daemon.pid)
    over = threading.Event()
    answered = 0

    def ask() -> None:
        nonlocal answered
        while not over.is_set():
            assert daemon.http("GET", "/_ping").status == 200
            answered += 1

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        half = int(daemon.http("GET", "/info").json()["MemTotal"] * 0.6)
        name = {"Name": "crowd", "Mode": {"Replicated": {"Replicas": MILLION}}}
        # With its tag: docker's client adds it when it scales, and another image would be another task.
        container = {"Image": "busybox:latest", "Command": FOREVER, "StopGracePeriod": 0}
        resources = {"Reservations": {"MemoryBytes": half}}
        created = daemon.http(
            "POST", "/services/create", {**name, "TaskTemplate": {"ContainerSpec": container, "Resources": resources}}
        )
        assert created.status == 201
        first = swarm.settles("crowd", 1)
        until(lambda: swarm.states("crowd").count("pending") > 90, "the next ones wait for room")
        answers_so_far = answered
        until(lambda: answered > answers_so_far + 20, "the API goes on answering")
    finally:
        over.set()
        asking.join()
    tasks = swarm.tasks("crowd")
    assert len(tasks) <= 101, "those that nothing can be done for yet are not made"
    assert any("insufficient resources" in task["Status"].get("Err", "") for task in tasks)
    [listed] = daemon.http("GET", "/services?status=1").json()
    assert listed["ServiceStatus"] == {"RunningTasks": 1, "DesiredTasks": MILLION, "CompletedTasks": 0}
    assert resident(daemon.pid) - before < 48 << 20
    daemon.docker("service", "scale", "-d", "crowd=1")
    until(lambda: len(swarm.tasks("crowd")) == 1, "the rest is forgotten")
    assert swarm.settles("crowd", 1) == first


@pytest.mark.parametrize(
    "mode", [{"Replicated": {"Replicas": 2 * 10**7}}, {"ReplicatedJob": {"TotalCompletions": 2 * 10**7}}]
)
def test_what_no_host_can_have_is_refused(swarm: Swarm, mode: dict[str, object]) -> None:
    answer = swarm.daemon.http(
        "POST", "/services/create", {"TaskTemplate": {"ContainerSpec": {"Image": "busybox"}}, "Mode": mode}
    )
    assert answer.status == 400
    assert "more than one host can ever have" in answer.json()["message"]
    assert swarm.daemon.http("GET", "/services").json() == []


def test_more_replicas_than_are_begun_at_once_all_come_to_run(swarm: Swarm) -> None:
    swarm.create("many", "--replicas", "110", "--network", "host", args=["sleep", "600"])
    swarm.settles("many", 110, deadline=180.0)
