"""Health of a container, told by its own test: in inspect, in lists, in events."""

import json
from contextlib import closing
from typing import Any

import pytest

from tests.support.daemon import Daemon
from tests.support.waiting import until

FAST = ("--health-interval", "50ms")


def run(daemon: Daemon, *options: str, name: str = "patient") -> str:
    return daemon.docker("run", "-d", "--name", name, *options, "busybox", "sleep", "1000").stdout.strip()


def health(daemon: Daemon, name: str = "patient") -> dict[str, Any]:
    found: dict[str, Any] = daemon.http("GET", f"/containers/{name}/json").json()["State"]["Health"]
    return found


def becomes(daemon: Daemon, status: str) -> dict[str, Any]:
    until(lambda: health(daemon)["Status"] == status, f"it is {status}")
    return health(daemon)


def test_healthy(daemon: Daemon):
    run(daemon, "--health-cmd", "echo fine; echo really >&2", *FAST)
    found = becomes(daemon, "healthy")
    assert found["FailingStreak"] == 0
    first = found["Log"][0]
    assert (first["ExitCode"], sorted(first["Output"].split())) == (0, ["fine", "really"])
    assert first["Start"] < first["End"]
    assert "(healthy)" in daemon.docker("ps").stdout


def test_unhealthy_after_its_retries_and_healthy_again(daemon: Daemon):
    run(daemon, "--health-cmd", "test -e /well", "--health-retries", "2", *FAST)
    found = becomes(daemon, "unhealthy")
    assert found["FailingStreak"] >= 2 and found["Log"][-1]["ExitCode"] == 1
    daemon.docker("exec", "patient", "touch", "/well")
    assert becomes(daemon, "healthy")["FailingStreak"] == 0


def test_the_log_holds_five(daemon: Daemon):
    run(daemon, "--health-cmd", "cat /proc/uptime", *FAST)
    until(lambda: len({entry["Output"] for entry in health(daemon)["Log"]}) == 5, "five results")
    first = health(daemon)["Log"][0]
    until(lambda: health(daemon)["Log"][0] != first, "the oldest has gone")
    assert len(health(daemon)["Log"]) == 5


def test_a_test_that_takes_too_long(daemon: Daemon):
    run(daemon, "--health-cmd", "echo slow; sleep 100", "--health-timeout", "200ms", "--health-retries", "1", *FAST)
    log = becomes(daemon, "unhealthy")["Log"]
    assert {entry["ExitCode"] for entry in log} == {-1}
    # On a busy machine the time may be over before a test has come to say anything.
    said = "Health check exceeded timeout (200ms): slow\n"
    until(lambda: said in [entry["Output"] for entry in health(daemon)["Log"]], "a test that said something first")


def test_failures_in_the_start_period_do_not_count(daemon: Daemon):
    options = ("--health-start-period", "1h", "--health-start-interval", "20ms", "--health-retries", "1")
    run(daemon, "--health-cmd", "test -e /well", "--health-interval", "1h", *options)
    until(lambda: len(health(daemon)["Log"]) >= 3, "some failures")
    assert (health(daemon)["Status"], health(daemon)["FailingStreak"]) == ("starting", 0)
    assert "(health: starting)" in daemon.docker("ps").stdout
    daemon.docker("exec", "patient", "touch", "/well")
    becomes(daemon, "healthy")


def test_a_command_without_a_shell_that_does_not_exist(daemon: Daemon):
    body = {"Image": "busybox", "Cmd": ["sleep", "1000"], "Healthcheck": {
        "Test": ["CMD", "nosuch"], "Interval": 50_000_000, "Retries": 1}}  # fmt: skip
    assert daemon.http("POST", "/containers/create?name=patient", body).status == 201
    daemon.docker("start", "patient")
    last = becomes(daemon, "unhealthy")["Log"][-1]
    assert last["ExitCode"] == -1 and "executable file not found" in last["Output"]


def test_none_means_none(daemon: Daemon):
    run(daemon, "--no-healthcheck")
    assert "Health" not in json.loads(daemon.docker("inspect", "patient").stdout)[0]["State"]


@pytest.mark.parametrize(
    "check, message",
    [
        ({"Interval": 1000}, "Interval in Healthcheck cannot be less than 1ms"),
        ({"Retries": -1}, "Retries in Healthcheck cannot be negative"),
    ],
)
def test_what_is_refused(daemon: Daemon, check: dict[str, int], message: str):
    body = {"Image": "busybox", "Healthcheck": {"Test": ["CMD", "true"], **check}}
    answer = daemon.http("POST", "/containers/create", body)
    assert (answer.status, answer.message) == (400, message)


def test_lists_and_filters(daemon: Daemon):
    run(daemon, "--health-cmd", "true", *FAST)
    run(daemon, "--health-cmd", "false", "--health-retries", "1", *FAST, name="ill")
    run(daemon, name="plain")
    becomes(daemon, "healthy")
    until(lambda: health(daemon, "ill")["Status"] == "unhealthy", "the other is ill")
    for status, name in (("healthy", "patient"), ("unhealthy", "ill"), ("none", "plain")):
        assert daemon.docker("ps", "--filter", f"health={status}", "--format", "{{.Names}}").stdout == f"{name}\n"
    listed = {entry["Names"][0]: entry["Health"]["Status"] for entry in daemon.http("GET", "/containers/json").json()}
    assert listed == {"/patient": "healthy", "/ill": "unhealthy", "/plain": "none"}


def test_events(daemon: Daemon):
    with closing(daemon.sdk()) as sdk:
        stream = sdk.events(decode=True, filters={"event": "health_status"})
        run(daemon, "--health-cmd", "test -e /well", "--health-retries", "1", *FAST)
        assert next(stream)["Action"] == "health_status: unhealthy"
        daemon.docker("exec", "patient", "touch", "/well")
        assert next(stream)["Action"] == "health_status: healthy"
        stream.close()


def test_it_stops_with_the_container_and_begins_with_it(daemon: Daemon):
    run(daemon, "--health-cmd", "sleep 100", *FAST)
    until(lambda: "sleep 100" in daemon.docker("exec", "patient", "ps").stdout, "a test is under way")
    daemon.docker("stop", "-t", "0", "patient")
    assert health(daemon)["Status"] == "unhealthy"
    daemon.docker("start", "patient")
    assert health(daemon)["Status"] == "starting"


def test_no_tests_while_paused(daemon: Daemon):
    """A twin, which is tested as often, is the clock."""
    for name in ("patient", "twin"):
        run(daemon, "--health-cmd", "true", *FAST, name=name)
        until(lambda name=name: health(daemon, name)["Status"] == "healthy", "it is healthy")  # type: ignore[misc]
    daemon.docker("pause", "patient")
    before = health(daemon)
    assert before["Status"] == "unhealthy"
    last = health(daemon, "twin")["Log"][-1]
    until(lambda: last not in health(daemon, "twin")["Log"], "the twin was tested five times since")
    assert health(daemon) == before
    daemon.docker("unpause", "patient")
    assert becomes(daemon, "healthy")["Log"] != before["Log"]


def test_a_new_daemon_begins_anew(fresh_daemon: Daemon):
    daemon = fresh_daemon
    run(daemon, "--health-cmd", "test ! -e /stuck || sleep 2000", "--health-timeout", "2s", *FAST)
    becomes(daemon, "healthy")
    daemon.docker("exec", "patient", "touch", "/stuck")
    until(lambda: "sleep 2000" in daemon.docker("exec", "patient", "ps").stdout, "a test is under way")
    daemon.kill9()
    daemon.start()
    assert health(daemon)["Status"] == "starting"
    daemon.docker("exec", "patient", "rm", "/stuck")
    becomes(daemon, "healthy")


def test_the_images_own_test(daemon: Daemon):
    daemon.docker("create", "--name", "maker", "busybox", "true")
    daemon.docker("commit", "--change", 'HEALTHCHECK --interval=1h CMD ["true"]', "maker", "tested")
    daemon.docker("run", "-d", "--name", "patient", *FAST, "tested", "sleep", "1000")
    becomes(daemon, "healthy")
