"""From created to gone: every verb, in its right and wrong moments."""

import pytest

from tests.support.daemon import Daemon
from tests.support.lifecycle import (
    ENDS_ON_TERM,
    IGNORES_TERM,
    create,
    ended,
    inspect,
    logs,
    post,
    ready,
    started,
    state,
    status,
)
from tests.support.waiting import until

# --- create


def test_created_container_has_no_process(daemon: Daemon):
    container = create(daemon, name="fresh")
    found = state(daemon, container)
    assert (found["Status"], found["Running"], found["Pid"], found["ExitCode"]) == ("created", False, 0, 0)
    assert found["StartedAt"] == found["FinishedAt"] == "0001-01-01T00:00:00Z"


def test_a_name_is_given_once(daemon: Daemon):
    first = create(daemon, name="taken")
    answer = daemon.http("POST", "/containers/create?name=taken", {"Image": "busybox"})
    assert (answer.status, answer.message) == (
        409,
        f'Conflict. The container name "/taken" is already in use by container "{first}". '
        "You have to remove (or rename) that container to be able to reuse that name.",
    )


@pytest.mark.parametrize("name", ["a", "-ab", "a b", "a/b", ".hidden", "ü1"])
def test_a_name_has_rules(daemon: Daemon, name: str):
    answer = daemon.http(
        "POST", "/containers/create?name=" + name.replace(" ", "%20").replace("ü", "%C3%BC"), {"Image": "busybox"}
    )
    assert (answer.status, "Invalid container name" in answer.message) == (400, True)


def test_a_container_without_a_name_gets_one(daemon: Daemon):
    assert len(inspect(daemon, create(daemon))["Name"]) > 3


def test_an_unknown_image_is_404_so_that_clients_pull_it(daemon: Daemon):
    answer = daemon.http("POST", "/containers/create", {"Image": "nothing:here"})
    assert (answer.status, answer.message) == (404, "No such image: nothing:here")


# --- which container


def test_references(daemon: Daemon):
    container = create(daemon, name="known")
    for reference in (container, container[:12], container[:5], "known"):
        assert inspect(daemon, reference)["Id"] == container
    # Such a path is answered with a redirection, which clients follow.
    assert daemon.docker("inspect", "-f", "{{.Id}}", "/known").stdout.strip() == container
    answer = daemon.http("GET", "/containers/unknown/json")
    assert (answer.status, answer.message) == (404, "No such container: unknown")


def test_an_ambiguous_prefix_is_400(daemon: Daemon):
    heads: dict[str, str] = {}
    while (head := (container := create(daemon))[0]) not in heads:
        heads[head] = container
    answer = daemon.http("GET", f"/containers/{head}/json")
    assert (answer.status, "multiple IDs found with provided prefix: " + head in answer.message) == (400, True)


def test_a_name_wins_over_a_prefix(daemon: Daemon):
    first = create(daemon)
    named = create(daemon, name=first[:6])
    assert inspect(daemon, first[:6])["Id"] == named


@pytest.mark.parametrize(
    ("method", "verb"),
    [
        ("POST", "/start"),
        ("POST", "/stop"),
        ("POST", "/restart"),
        ("POST", "/kill"),
        ("POST", "/pause"),
        ("POST", "/unpause"),
        ("POST", "/wait"),
        ("POST", "/rename?name=other"),
        ("POST", "/resize?h=1&w=1"),
        ("GET", "/logs?stdout=1"),
        ("GET", "/json"),
        ("DELETE", ""),
    ],
)
def test_every_verb_on_nothing_is_404(daemon: Daemon, method: str, verb: str):
    answer = daemon.http(method, f"/containers/nothing{verb}")
    told = "cannot kill container: nothing: " if verb == "/kill" else ""
    assert (answer.status, answer.message) == (404, f"{told}No such container: nothing")


# --- start and stop


def test_start_twice_is_304(daemon: Daemon):
    container = started(daemon)
    answer = post(daemon, container, "start")
    assert (answer.status, answer.body) == (304, b"")


def test_stop_what_does_not_run_is_304(daemon: Daemon):
    container = create(daemon)
    assert post(daemon, container, "stop").status == 304
    assert post(daemon, started(daemon, "true"), "wait").status == 200
    assert status(daemon, container) == "created"


def test_stop_asks_before_it_kills(daemon: Daemon):
    container = ready(daemon, ENDS_ON_TERM)
    assert post(daemon, container, "stop").status == 204
    found = state(daemon, container)
    assert (found["Status"], found["ExitCode"], found["Pid"]) == ("exited", 5, 0)


def test_stop_kills_after_its_time(daemon: Daemon):
    container = ready(daemon, IGNORES_TERM)
    assert post(daemon, container, "stop?t=1").status == 204
    assert state(daemon, container)["ExitCode"] == 137


def test_stop_at_once_with_zero_seconds(daemon: Daemon):
    container = ready(daemon, IGNORES_TERM)
    daemon.docker("stop", "-t", "0", container)
    assert state(daemon, container)["ExitCode"] == 137


def test_stop_timeout_of_the_container_itself(daemon: Daemon):
    container = ready(daemon, IGNORES_TERM, StopTimeout=0)
    assert post(daemon, container, "stop").status == 204
    assert state(daemon, container)["ExitCode"] == 137


def test_stop_with_a_signal(daemon: Daemon):
    container = ready(daemon, ENDS_ON_TERM)
    assert post(daemon, container, "stop?signal=SIGUSR1").status == 204
    assert state(daemon, container)["ExitCode"] == 6


def test_the_containers_own_stop_signal(daemon: Daemon):
    container = ready(daemon, ENDS_ON_TERM, StopSignal="USR1")
    daemon.docker("stop", container)
    assert state(daemon, container)["ExitCode"] == 6


def test_stop_with_nonsense_is_400(daemon: Daemon):
    container = started(daemon)
    assert post(daemon, container, "stop?signal=SIGNONSENSE").status == 400
    assert post(daemon, container, "stop?t=soon").status == 400
    assert status(daemon, container) == "running"


def test_a_paused_container_can_be_stopped(daemon: Daemon):
    container = ready(daemon, ENDS_ON_TERM)
    assert post(daemon, container, "pause").status == 204
    assert post(daemon, container, "stop?t=50").status == 204
    assert state(daemon, container)["ExitCode"] == 5


def test_start_again_keeps_the_files(daemon: Daemon):
    container = started(daemon, "sh", "-c", "echo line >> /log; cat /log")
    assert ended(daemon, container) == 0
    assert post(daemon, container, "start").status == 204
    ended(daemon, container)
    assert logs(daemon, container).count(b"line\n") == 3


# --- kill


def test_kill_is_sigkill(daemon: Daemon):
    container = started(daemon)
    assert post(daemon, container, "kill").status == 204
    assert ended(daemon, container) == 137


@pytest.mark.parametrize("signal", ["USR1", "SIGUSR1", "10", "sigusr1"])
def test_kill_with_a_signal(daemon: Daemon, signal: str):
    container = ready(daemon, ENDS_ON_TERM)
    daemon.docker("kill", "-s", signal, container)
    assert ended(daemon, container) == 6


def test_kill_with_a_signal_that_does_not_end_it(daemon: Daemon):
    container = ready(daemon, "trap 'echo got it' HUP; echo ready; while true; do sleep 0.02; done")
    assert post(daemon, container, "kill?signal=HUP").status == 204
    until(lambda: b"got it" in logs(daemon, container), "the signal arrives")
    assert status(daemon, container) == "running"


def test_kill_what_does_not_run_is_409(daemon: Daemon):
    container = create(daemon)
    answer = post(daemon, container, "kill")
    assert (answer.status, answer.message) == (
        409,
        f"cannot kill container: {container}: container {container} is not running",
    )


@pytest.mark.parametrize("signal", ["NOPE", "0", "99", "-1", "SIG"])
def test_kill_with_no_signal_is_400(daemon: Daemon, signal: str):
    container = started(daemon)
    answer = post(daemon, container, f"kill?signal={signal}")
    words = f"does not support signal {signal}" if signal in ("99", "-1") else "nvalid signal"
    assert (answer.status, words in answer.message) == (400, True)


# --- pause


def test_pause_and_unpause(daemon: Daemon):
    container = ready(daemon, "echo ready; while true; do echo tick; sleep 0.02; done")
    assert post(daemon, container, "pause").status == 204
    found = state(daemon, container)
    assert (found["Status"], found["Paused"], found["Running"]) == ("paused", True, True)
    size = len(logs(daemon, container))
    assert post(daemon, container, "unpause").status == 204
    until(lambda: len(logs(daemon, container)) > size, "it goes on")
    assert status(daemon, container) == "running"


def test_pause_conflicts(daemon: Daemon):
    container = create(daemon)
    assert post(daemon, container, "pause").status == 409
    assert post(daemon, container, "unpause").status == 409
    post(daemon, container, "start")
    assert post(daemon, container, "unpause").status == 409
    assert post(daemon, container, "pause").status == 204
    assert post(daemon, container, "pause").status == 409
    answer = post(daemon, container, "start")
    assert (answer.status, answer.message) == (409, "cannot start a paused container, try unpause instead")


def test_a_paused_container_can_be_killed_and_removed(daemon: Daemon):
    container = started(daemon)
    post(daemon, container, "pause")
    assert post(daemon, container, "kill").status == 204
    assert ended(daemon, container) == 137
    post(daemon, container, "start")
    post(daemon, container, "pause")
    assert daemon.http("DELETE", f"/containers/{container}?force=1").status == 204


# --- rename


def test_rename(daemon: Daemon):
    container = create(daemon, name="old")
    daemon.docker("rename", "old", "new")
    assert inspect(daemon, "new")["Id"] == container
    assert daemon.http("GET", "/containers/old/json").status == 404
    create(daemon, name="old")


def test_rename_conflicts(daemon: Daemon):
    create(daemon, name="one")
    create(daemon, name="two")
    assert post(daemon, "one", "rename?name=two").status == 409
    assert post(daemon, "one", "rename?name=one").status == 400
    assert post(daemon, "one", "rename").status == 400
    assert post(daemon, "one", "rename?name=!").status == 400
    assert inspect(daemon, "one")["Name"] == "/one"


# --- remove


def test_remove(daemon: Daemon):
    container = create(daemon)
    assert daemon.http("DELETE", f"/containers/{container}").status == 204
    assert daemon.http("DELETE", f"/containers/{container}").status == 404


@pytest.mark.parametrize(
    ("how", "advice"),
    [
        ("running", ": stop the container before removing or force remove"),
        ("paused", " and must be unpaused first"),
    ],
)
def test_remove_what_runs_is_409(daemon: Daemon, how: str, advice: str):
    container = started(daemon, name="runs")
    if how == "paused":
        post(daemon, container, "pause")
    answer = daemon.http("DELETE", f"/containers/{container}")
    assert (answer.status, answer.message) == (
        409,
        f'cannot remove container "runs": container is {how}{advice}',
    )
    assert status(daemon, container) == how


def test_remove_by_force(daemon: Daemon):
    container = started(daemon)
    daemon.docker("rm", "-f", container)
    assert daemon.http("GET", f"/containers/{container}/json").status == 404
    daemon.docker("rm", "-f", "was-never-there")


def test_annotations_are_shown(daemon: Daemon) -> None:
    daemon.docker("create", "--name", "box", "--annotation", "a.b=c", "busybox", "true")
    assert daemon.http("GET", "/containers/box/json").json()["HostConfig"]["Annotations"] == {"a.b": "c"}
