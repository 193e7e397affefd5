"""Containers that start again: by hand, by policy; and those that go instead."""

import contextlib
import os
import signal
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.lifecycle import (
    ENDS_ON_TERM,
    create,
    ended,
    inspect,
    logs,
    post,
    ready,
    started,
    state,
    status,
    wait_head,
)
from tests.support.waiting import until


def test_restart_runs_anew(daemon: Daemon):
    container = ready(daemon, ENDS_ON_TERM)
    before = state(daemon, container)
    assert post(daemon, container, "restart?t=5").status == 204
    after = state(daemon, container)
    assert after["Status"] == "running" and after["Pid"] != before["Pid"] and after["StartedAt"] > before["StartedAt"]


def test_restart_keeps_a_container_that_goes_with_its_process(daemon: Daemon):
    daemon.docker("run", "-d", "--rm", "--name", "box", "-v", "/data", "busybox", "sleep", "1000")
    daemon.docker("exec", "box", "touch", "/data/kept")
    # A power cut would take its files anyway: nothing in it waits for the disk, also when it is mounted anew.
    assert "volatile" in daemon.docker("exec", "box", "grep", " / ", "/proc/mounts").stdout
    daemon.docker("restart", "-t", "0", "box")
    assert "volatile" in daemon.docker("exec", "box", "grep", " / ", "/proc/mounts").stdout
    assert daemon.docker("exec", "box", "ls", "/data").stdout == "kept\n"
    daemon.docker("stop", "-t", "0", "box")
    until(lambda: daemon.http("GET", "/containers/box/json").status == 404, "it goes with the next end")


def test_restarts_at_once_all_succeed(daemon: Daemon):
    container = started(daemon)
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: post(daemon, container, "restart?t=0").status, range(4)))
    assert answers == [204] * 4
    assert status(daemon, container) == "running"


def test_restart_starts_what_does_not_run(daemon: Daemon):
    container = create(daemon)
    daemon.docker("restart", "-t", "0", container)
    assert status(daemon, container) == "running"


# --- restart policies


def test_always_starts_again(daemon: Daemon):
    container = started(daemon, "sh", "-c", "exit 0", host={"RestartPolicy": {"Name": "always"}})
    until(lambda: inspect(daemon, container)["RestartCount"] >= 2, "it starts again and again")
    assert post(daemon, container, "stop").status in (204, 304)
    assert status(daemon, container) == "exited"


def test_on_failure_gives_up_after_its_count(daemon: Daemon):
    policy = {"Name": "on-failure", "MaximumRetryCount": 2}
    container = started(daemon, "sh", "-c", "echo run; exit 3", host={"RestartPolicy": policy})
    until(lambda: status(daemon, container) == "exited", "it gives up")
    assert logs(daemon, container).count(b"run\n") == 3
    assert (inspect(daemon, container)["RestartCount"], state(daemon, container)["ExitCode"]) == (2, 3)


def test_on_failure_leaves_a_success_alone(daemon: Daemon):
    container = started(daemon, "true", host={"RestartPolicy": {"Name": "on-failure"}})
    assert ended(daemon, container) == 0
    assert (status(daemon, container), inspect(daemon, container)["RestartCount"]) == ("exited", 0)


@pytest.mark.parametrize("policy", ["always", "unless-stopped", "on-failure"])
def test_a_stopped_container_stays_stopped(daemon: Daemon, policy: str):
    container = ready(daemon, ENDS_ON_TERM, host={"RestartPolicy": {"Name": policy}})
    assert post(daemon, container, "stop").status == 204
    assert (status(daemon, container), state(daemon, container)["Restarting"]) == ("exited", False)


def test_a_restarting_container_can_be_stopped_removed_and_waited_for(daemon: Daemon):
    policy = {"RestartPolicy": {"Name": "always"}}
    container = started(daemon, "sh", "-c", "exit 1", host=policy)
    until(lambda: inspect(daemon, container)["RestartCount"] >= 4, "its pauses are long")
    until(lambda: status(daemon, container) == "restarting", "it rests")
    answer = daemon.http("DELETE", f"/containers/{container}")
    assert (answer.status, "container is restarting" in answer.message) == (409, True)
    with wait_head(daemon, container, "not-running") as client:
        assert post(daemon, container, "stop").status == 204
        assert client.json_body() == {"StatusCode": 1}
    assert status(daemon, container) == "exited"
    assert daemon.http("DELETE", f"/containers/{container}").status == 204


def test_a_restarting_container_is_neither_started_nor_paused(daemon: Daemon):
    container = started(daemon, "false", host={"RestartPolicy": {"Name": "always"}})
    until(lambda: inspect(daemon, container)["RestartCount"] > 3 and status(daemon, container) == "restarting", "rests")
    assert post(daemon, container, "start").status == 304
    answer = post(daemon, container, "pause")
    assert (answer.status, "is restarting, wait until the container is running" in answer.message) == (409, True)


def test_a_restarting_container_can_be_killed(daemon: Daemon):
    container = started(daemon, "sh", "-c", "exit 1", host={"RestartPolicy": {"Name": "always"}})
    until(lambda: inspect(daemon, container)["RestartCount"] >= 3, "its pauses are long")
    until(lambda: status(daemon, container) == "restarting", "it rests")
    assert post(daemon, container, "kill?signal=HUP").status == 409
    assert post(daemon, container, "kill").status == 204
    assert status(daemon, container) == "exited"


def test_a_stop_in_the_middle_of_a_restart_holds(daemon: Daemon):
    container = started(daemon, "sh", "-c", "exit 1", host={"RestartPolicy": {"Name": "always"}})
    for _ in range(4):
        until(lambda: inspect(daemon, container)["RestartCount"] >= 1, "it starts again")
        assert post(daemon, container, "stop").status in (204, 304)
        assert status(daemon, container) == "exited"
        post(daemon, container, "start")


def test_restart_policies_with_the_daemon(fresh_daemon: Daemon):
    daemon = fresh_daemon
    for policy in ("always", "unless-stopped", "no"):
        started(daemon, name=f"left-{policy}", host={"RestartPolicy": {"Name": policy}})
        post(daemon, started(daemon, name=f"stopped-{policy}", host={"RestartPolicy": {"Name": policy}}), "stop?t=0")
    daemon.restart()
    until(lambda: status(daemon, "stopped-always") == "running", "`always` means always")
    seen = {name: status(daemon, name) for name in ("left-always", "left-unless-stopped", "left-no")}
    assert set(seen.values()) == {"running"}
    assert (status(daemon, "stopped-unless-stopped"), status(daemon, "stopped-no")) == ("exited", "exited")


def mounting(source: Path, policy: str) -> dict[str, object]:
    """A container with this cannot be started while the directory is missing."""
    mount = {"Type": "bind", "Source": str(source), "Target": "/data"}
    return {"Mounts": [mount], "RestartPolicy": {"Name": policy}}


@pytest.mark.parametrize("policy", ["always", "unless-stopped", "on-failure"])
def test_a_restart_that_fails_is_tried_again(daemon: Daemon, tmp_path: Path, policy: str):
    source = tmp_path / "data"
    source.mkdir()
    container = started(daemon, "sh", "-c", "sleep 0.2; exit 1", host=mounting(source, policy))
    source.rmdir()
    until(lambda: "does not exist" in state(daemon, container)["Error"], "a restart has failed")
    seen = state(daemon, container)
    assert (seen["Status"], seen["Restarting"], seen["ExitCode"]) == ("restarting", True, 1)
    count = inspect(daemon, container)["RestartCount"]
    until(lambda: inspect(daemon, container)["RestartCount"] > count, "it is tried again")
    source.mkdir()
    until(lambda: status(daemon, container) == "running", "it starts when it can")
    assert state(daemon, container)["Error"] == ""


def test_a_restart_that_fails_can_be_stopped(daemon: Daemon, tmp_path: Path):
    source = tmp_path / "data"
    source.mkdir()
    container = started(daemon, "sh", "-c", "sleep 0.2; exit 1", host=mounting(source, "always"))
    source.rmdir()
    until(lambda: "does not exist" in state(daemon, container)["Error"], "a restart has failed")
    assert post(daemon, container, "stop").status == 204
    seen = state(daemon, container)
    assert (seen["Status"], "does not exist" in seen["Error"]) == ("exited", True)


@pytest.mark.parametrize("how", ["restart", "crash"])
def test_a_restart_that_fails_is_tried_again_by_the_next_daemon(fresh_daemon: Daemon, tmp_path: Path, how: str):
    daemon, source = fresh_daemon, tmp_path / "data"
    source.mkdir()
    container = started(daemon, "sh", "-c", "sleep 0.2; exit 1", host=mounting(source, "unless-stopped"))
    source.rmdir()
    until(lambda: "does not exist" in state(daemon, container)["Error"], "a restart has failed")
    daemon.stop() if how == "restart" else daemon.kill9()
    daemon.start()
    until(lambda: "does not exist" in state(daemon, container)["Error"], "it has failed again")
    source.mkdir()
    until(lambda: status(daemon, container) == "running", "it starts when it can")


def test_on_failure_counts_restarts_that_fail(daemon: Daemon, tmp_path: Path):
    source = tmp_path / "data"
    source.mkdir()
    host = mounting(source, "on-failure")
    host["RestartPolicy"] = {"Name": "on-failure", "MaximumRetryCount": 2}
    container = started(daemon, "sh", "-c", "sleep 0.2; exit 1", host=host)
    source.rmdir()
    until(lambda: status(daemon, container) == "exited", "it gives up")
    assert inspect(daemon, container)["RestartCount"] == 2
    assert "does not exist" in state(daemon, container)["Error"]


def test_a_start_by_hand_that_fails_is_not_tried_again(daemon: Daemon, tmp_path: Path):
    source = tmp_path / "data"
    source.mkdir()
    container = create(daemon, "true", host=mounting(source, "always"))
    source.rmdir()
    assert post(daemon, container, "start").status == 400
    assert (status(daemon, container), inspect(daemon, container)["RestartCount"]) == ("created", 0)


def test_always_counts_again_after_a_stop_by_hand_and_a_new_daemon(fresh_daemon: Daemon):
    daemon = fresh_daemon
    container = started(daemon, "sh", "-c", "sleep 1000", host={"RestartPolicy": {"Name": "always"}})
    post(daemon, container, "stop?t=0")
    daemon.restart()
    until(lambda: status(daemon, container) == "running", "`always` means always")
    os.kill(state(daemon, container)["Pid"], signal.SIGKILL)
    until(lambda: inspect(daemon, container)["RestartCount"] == 1, "it starts again")


# --- auto-remove


def test_autoremove(daemon: Daemon):
    container = started(daemon, "true", host={"AutoRemove": True})
    until(lambda: daemon.http("GET", f"/containers/{container}/json").status == 404, "it goes by itself")


def test_autoremove_after_a_failed_start(daemon: Daemon):
    container = create(daemon, "no-such-program", host={"AutoRemove": True})
    answer = post(daemon, container, "start")
    assert (answer.status, "executable file not found in $PATH" in answer.message) == (400, True)
    assert daemon.http("GET", f"/containers/{container}/json").status == 404


def test_autoremove_with_a_restart_policy_is_400(daemon: Daemon):
    body = {"Image": "busybox", "HostConfig": {"AutoRemove": True, "RestartPolicy": {"Name": "always"}}}
    answer = daemon.http("POST", "/containers/create", body)
    assert (answer.status, answer.message) == (400, "can't create 'AutoRemove' container with restart policy")


def test_stop_of_an_autoremoved_one(daemon: Daemon):
    container = ready(daemon, ENDS_ON_TERM, host={"AutoRemove": True})
    daemon.docker("stop", container)
    until(lambda: daemon.http("GET", f"/containers/{container}/json").status == 404, "it goes by itself")


def test_one_that_a_crash_kept_from_going_goes_at_the_next_start(fresh_daemon: Daemon):
    daemon = fresh_daemon
    container = started(daemon, "true")
    ended(daemon, container)
    daemon.stop()
    with contextlib.closing(sqlite3.connect(daemon.config.data_root / "state.db", isolation_level=None)) as database:
        change = "UPDATE document SET body = json_set(CAST(body AS TEXT), '$.host_config.AutoRemove', json('true'))"
        database.execute(change + " WHERE kind = 'container'")
    daemon.start()
    assert daemon.http("GET", f"/containers/{container}/json").status == 404
    assert not (daemon.config.data_root / "containers" / container).exists()
