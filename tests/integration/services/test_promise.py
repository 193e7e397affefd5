"""The promise: a container that belongs to a service and ends, by whatever cause, is replaced by a new one."""

import os
import signal
from collections.abc import Callable

import pytest

from tests.integration.test_crash import monitor_of
from tests.support.daemon import Daemon
from tests.support.swarm import Swarm
from tests.support.waiting import until


def _process(daemon: Daemon, container: str) -> int:
    return int(daemon.http("GET", f"/containers/{container}/json").json()["State"]["Pid"])


def _kill_process(daemon: Daemon, container: str) -> None:
    os.kill(_process(daemon, container), signal.SIGKILL)


def _kill_monitor(daemon: Daemon, container: str) -> None:
    os.kill(monitor_of(_process(daemon, container)), signal.SIGKILL)


ENDS: dict[str, Callable[[Daemon, str], object]] = {
    "stop": lambda daemon, container: daemon.docker("stop", "-t", "0", container),
    "kill": lambda daemon, container: daemon.docker("kill", container),
    "rm -f": lambda daemon, container: daemon.docker("rm", "-f", container),
    "its process dies": _kill_process,
    "its monitor dies": _kill_monitor,
}


@pytest.mark.parametrize("cause", ENDS)
def test_what_ends_is_replaced(swarm: Swarm, cause: str) -> None:
    swarm.create("web", "--replicas", "2")
    before = set(swarm.settles("web", 2))
    victim = min(before)
    ENDS[cause](swarm.daemon, victim)
    until(lambda: victim not in swarm.containers("web"), "it ends")
    after = set(swarm.settles("web", 2))
    assert len(after & before) == 1, "the other one is left alone"
    assert [state for state in swarm.states("web") if state != "running"] == ["failed"]


def test_all_at_once(swarm: Swarm) -> None:
    swarm.create("web", "--replicas", "4")
    before = swarm.settles("web", 4)
    swarm.daemon.docker("rm", "-f", *before)
    assert not set(swarm.settles("web", 4)) & set(before)


def test_a_task_that_ends_well_is_replaced_too(swarm: Swarm) -> None:
    swarm.create("brief", args=["sleep", "0.2"])
    until(lambda: swarm.states("brief").count("complete") >= 3, "it ran three times")


def test_a_task_that_is_stopped_waits_out_its_delay(swarm: Swarm) -> None:
    swarm.create("web", "--restart-delay", "1h")
    [container] = swarm.settles("web", 1)
    swarm.daemon.docker("kill", container)
    until(lambda: swarm.states("web") == ["failed"], "its end is seen")
    assert not swarm.containers("web")
    # A change of the service counts more than the delay.
    swarm.update("web", "--env-add", "A=1")
    swarm.settles("web", 1)


def test_the_daemon_is_killed_and_nothing_changes(fresh_swarm: Swarm) -> None:
    swarm = fresh_swarm
    swarm.create("web", "--replicas", "3")
    swarm.create("everywhere", "--mode", "global")
    web, everywhere = swarm.settles("web", 3), swarm.settles("everywhere", 1)
    swarm.daemon.kill9()
    swarm.daemon.start()
    assert swarm.settles("web", 3) == web
    assert swarm.settles("everywhere", 1) == everywhere
    assert len(swarm.containers("web", all=True)) == 3


def test_tasks_that_end_while_the_daemon_is_away_are_replaced(fresh_swarm: Swarm) -> None:
    swarm = fresh_swarm
    swarm.create("web", "--replicas", "3")
    before = swarm.settles("web", 3)
    pids = [_process(swarm.daemon, container) for container in before]
    monitor = monitor_of(pids[1])
    swarm.daemon.kill9()
    os.kill(pids[0], signal.SIGKILL)
    os.kill(monitor, signal.SIGKILL)
    swarm.daemon.start()
    after = swarm.settles("web", 3)
    assert set(after) & set(before) == {before[2]}


def test_tasks_that_are_cut_off_at_their_start(swarm: Swarm) -> None:
    """Scaled up and at once down again, at another moment each time: nothing hangs, nothing is left."""
    swarm.create("web", "--replicas", "0")
    for started in range(6):
        swarm.daemon.docker("service", "scale", "-d", "web=6")
        until(lambda n=started: len(swarm.containers("web")) >= n, "some have started")  # type: ignore[misc]
        swarm.daemon.docker("service", "scale", "-d", "web=0")
        until(lambda: not swarm.containers("web", all=True), "all are gone")


@pytest.mark.parametrize("attempt", range(3))
def test_the_daemon_is_killed_while_it_works(fresh_swarm: Swarm, attempt: int) -> None:
    """Each time at another moment of starting and stopping tasks."""
    swarm = fresh_swarm
    swarm.create("web", "--replicas", "6")
    swarm.daemon.kill9()
    swarm.daemon.start()
    swarm.settles("web", 6)
    swarm.daemon.docker("service", "scale", "-d", "web=2")
    if attempt:
        until(lambda: len(swarm.containers("web")) < 6 - attempt, "it is at work")
    swarm.daemon.kill9()
    swarm.daemon.start()
    swarm.settles("web", 2)
    until(lambda: len(swarm.containers("web", all=True)) == 2, "what was scaled away is gone")
    swarm.update("web", "--env-add", "A=1", "--update-parallelism", "0")
    swarm.daemon.kill9()
    swarm.daemon.start()
    swarm.settles("web", 2)
    swarm.daemon.docker("service", "rm", "web")
    swarm.daemon.kill9()
    swarm.daemon.start()
    until(lambda: not swarm.containers("web", all=True), "everything is gone with the service")


def test_one_that_is_restarted_by_hand_is_not_one_too_many(swarm: Swarm) -> None:
    swarm.create("web", "--replicas", "2")
    before = swarm.settles("web", 2)
    swarm.daemon.docker("restart", "-t", "0", before[0])
    swarm.settles("web", 2)
    # One that is history already is put back to rest.
    swarm.daemon.docker("kill", before[1])
    until(lambda: before[1] not in swarm.containers("web"), "it ends")
    swarm.settles("web", 2)
    swarm.daemon.docker("start", before[1])
    until(lambda: before[1] not in swarm.containers("web"), "it ends again")
    assert len(swarm.settles("web", 2)) == 2


def test_another_name_or_a_pause_saves_no_container(swarm: Swarm) -> None:
    swarm.create("web", "--replicas", "2")
    renamed, paused = swarm.settles("web", 2)
    swarm.daemon.docker("rename", renamed, "mine")
    swarm.daemon.docker("pause", paused)
    assert "mine" in swarm.daemon.docker("ps", "--format", "{{.Names}}").stdout
    swarm.daemon.docker("service", "scale", "-d", "web=0")
    until(lambda: not swarm.containers("web", all=True), "both are gone")


def test_an_image_that_is_gone_and_comes_back(swarm: Swarm) -> None:
    daemon = swarm.daemon
    daemon.docker("tag", "busybox", "127.0.0.1:9/mine:1")
    swarm.create("web", image="127.0.0.1:9/mine:1")
    [container] = swarm.settles("web", 1)
    daemon.docker("rmi", "-f", "127.0.0.1:9/mine:1")
    assert swarm.settles("web", 1) == [container], "it runs on"
    daemon.docker("kill", container)
    until(lambda: "rejected" in swarm.states("web"), "there is nothing to make a new one of")
    daemon.docker("tag", "busybox", "127.0.0.1:9/mine:1")
    swarm.settles("web", 1)
    swarm.remove_all()
    daemon.docker("rmi", "127.0.0.1:9/mine:1")


def test_what_is_due_survives_the_daemon(fresh_swarm: Swarm) -> None:
    """A restart that is delayed, a job that ends meanwhile, an update that waits between its slots."""
    swarm = fresh_swarm
    swarm.create("late", "--restart-delay", "3s")
    swarm.create("job", "--mode", "replicated-job", "--replicas", "2", args=["sleep", "1"])
    swarm.create("slow", "--replicas", "2", "--update-delay", "3s", "--update-monitor", "100ms")
    [container], slow = swarm.settles("late", 1), set(swarm.settles("slow", 2))
    swarm.daemon.docker("kill", container)
    swarm.update("slow", "--env-add", "A=1")
    until(lambda: len(slow & set(swarm.containers("slow"))) == 1, "the first slot is replaced")
    until(lambda: swarm.states("late") == ["failed"], "its end is seen")
    swarm.daemon.kill9()
    swarm.daemon.start()
    swarm.settles("late", 1)
    until(lambda: swarm.update_state("slow") == "completed", "the update goes on")
    assert not slow & set(swarm.settles("slow", 2))
    until(lambda: swarm.states("job") == ["complete"] * 2, "the job is done, and no more than once")
