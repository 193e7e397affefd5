"""From created to gone: every verb, in its right and wrong moments, one at a time and all at once."""

import json
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.daemon import Answer, Daemon
from tests.support.waiting import until
from tests.support.wire import RawClient

IGNORES_TERM = "trap '' TERM; echo ready; while true; do sleep 0.05; done"
ENDS_ON_TERM = "trap 'exit 5' TERM; trap 'exit 6' USR1; echo ready; while true; do sleep 0.02; done"


def create(daemon: Daemon, *command: str, name: str = "", host: dict[str, Any] | None = None, **config: Any) -> str:
    body = {"Image": "busybox", "Cmd": list(command) or ["sleep", "1000"], "HostConfig": host or {}, **config}
    answer = daemon.http("POST", f"/containers/create?name={name}", body)
    assert answer.status == 201, answer.body
    return str(answer.json()["Id"])


def post(daemon: Daemon, container: str, verb: str) -> Answer:
    return daemon.http("POST", f"/containers/{container}/{verb}")


def started(daemon: Daemon, *command: str, name: str = "", host: dict[str, Any] | None = None, **config: Any) -> str:
    container = create(daemon, *command, name=name, host=host, **config)
    answer = post(daemon, container, "start")
    assert answer.status == 204, answer.body
    return container


def ready(daemon: Daemon, script: str, **options: Any) -> str:
    """A container whose script has printed `ready`."""
    container = started(daemon, "sh", "-c", script, **options)
    until(lambda: b"ready" in logs(daemon, container), "the script is ready")
    return container


def logs(daemon: Daemon, container: str) -> bytes:
    return daemon.http("GET", f"/containers/{container}/logs?stdout=1&stderr=1").body


def inspect(daemon: Daemon, container: str) -> dict[str, Any]:
    answer = daemon.http("GET", f"/containers/{container}/json")
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json()
    return found


def state(daemon: Daemon, container: str) -> dict[str, Any]:
    found: dict[str, Any] = inspect(daemon, container)["State"]
    return found


def status(daemon: Daemon, container: str) -> str:
    return str(state(daemon, container)["Status"])


def ended(daemon: Daemon, container: str) -> int:
    """The exit code, once it is there."""
    return int(post(daemon, container, "wait").json()["StatusCode"])


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
    for reference in (container, container[:12], container[:5], "known", "/known", "%2Fknown"):
        assert inspect(daemon, reference)["Id"] == container
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
        ("POST", "/attach?stream=1&stdout=1"),
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


def test_restart_runs_anew(daemon: Daemon):
    container = ready(daemon, ENDS_ON_TERM)
    before = state(daemon, container)
    assert post(daemon, container, "restart?t=5").status == 204
    after = state(daemon, container)
    assert after["Status"] == "running" and after["Pid"] != before["Pid"] and after["StartedAt"] > before["StartedAt"]


def test_restart_starts_what_does_not_run(daemon: Daemon):
    container = create(daemon)
    daemon.docker("restart", "-t", "0", container)
    assert status(daemon, container) == "running"


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
    assert (answer.status, "nvalid signal" in answer.message) == (400, True)


# --- wait


def wait_head(daemon: Daemon, container: str, condition: str) -> RawClient:
    """A wait whose headers have come."""
    client = RawClient(daemon.raw(20))
    client.request("POST", f"/v1.50/containers/{container}/wait?condition={condition}")
    head = client.head()
    assert (head.status, head.headers["Content-Type"]) == (200, "application/json")
    return client


def test_wait_answers_its_headers_before_the_container_starts(daemon: Daemon):
    container = create(daemon, "sh", "-c", "exit 3")
    with wait_head(daemon, container, "next-exit") as client:
        assert post(daemon, container, "start").status == 204
        assert client.json_body() == {"StatusCode": 3}


def test_wait_for_not_running_is_over_at_once_for_a_created_one(daemon: Daemon):
    container = create(daemon)
    for condition in ("", "not-running"):
        assert post(daemon, container, f"wait?condition={condition}").json() == {"StatusCode": 0}


def test_wait_for_the_next_exit_does_not_take_the_last(daemon: Daemon):
    container = started(daemon, "sh", "-c", "test -e /second && exit 9; touch /second; exit 4")
    assert ended(daemon, container) == 4
    with wait_head(daemon, container, "next-exit") as client:
        post(daemon, container, "start")
        assert client.json_body() == {"StatusCode": 9}


def test_wait_for_removal(daemon: Daemon):
    container = started(daemon, "sh", "-c", "exit 4")
    with wait_head(daemon, container, "removed") as client:
        assert ended(daemon, container) == 4
        assert daemon.http("DELETE", f"/containers/{container}").status == 204
        assert client.json_body() == {"StatusCode": 4}


def test_wait_for_the_removal_of_an_autoremoved_one(daemon: Daemon):
    container = create(daemon, "sh", "-c", "exit 4", host={"AutoRemove": True})
    with wait_head(daemon, container, "removed") as client:
        post(daemon, container, "start")
        assert client.json_body() == {"StatusCode": 4}
    assert daemon.http("GET", f"/containers/{container}/json").status == 404


def test_many_waiters_hear_of_it(daemon: Daemon):
    container = started(daemon)
    clients = [wait_head(daemon, container, "not-running") for _ in range(20)]
    post(daemon, container, "kill")
    assert [client.json_body() for client in clients] == [{"StatusCode": 137}] * 20
    for client in clients:
        client.close()


def test_wait_with_a_wrong_condition_is_400(daemon: Daemon):
    answer = post(daemon, create(daemon), "wait?condition=tired")
    assert (answer.status, answer.message) == (400, 'invalid condition: "tired"')


def test_a_waiter_that_leaves_harms_nobody(daemon: Daemon):
    container = started(daemon)
    wait_head(daemon, container, "not-running").close()
    post(daemon, container, "kill")
    assert ended(daemon, container) == 137


def test_docker_wait(daemon: Daemon):
    container = started(daemon, "sh", "-c", "exit 11")
    assert daemon.docker("wait", container).stdout == "11\n"


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


# --- all at once


LEGAL = {"created", "running", "paused", "exited", "restarting", "removing"}


def test_starts_at_once_start_it_once(daemon: Daemon):
    container = create(daemon, "sh", "-c", "echo up; sleep 1000")
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: post(daemon, container, "start").status, range(8)))
    assert sorted(answers) == [204] + [304] * 7
    until(lambda: b"up" in logs(daemon, container), "it runs")
    assert logs(daemon, container).count(b"up") == 1


def test_removals_at_once(daemon: Daemon):
    container = started(daemon)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: daemon.http("DELETE", f"/containers/{container}?force=1").status, range(8)))
    assert set(answers) <= {204, 404, 409} and 204 in answers


def test_creations_with_one_name_at_once(daemon: Daemon):
    def attempt(_: int) -> int:
        return daemon.http("POST", "/containers/create?name=only-one", {"Image": "busybox"}).status

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(attempt, range(8))) == [201] + [409] * 7


def test_a_forced_removal_wins_against_a_start(daemon: Daemon):
    for _ in range(5):
        container = create(daemon)
        starting = threading.Thread(target=post, args=(daemon, container, "start"))
        starting.start()
        assert daemon.http("DELETE", f"/containers/{container}?force=1").status == 204
        starting.join()
        assert daemon.http("GET", f"/containers/{container}/json").status == 404


def test_a_storm_of_verbs_ends_in_a_legal_state(daemon: Daemon):
    names = [f"storm{n}" for n in range(3)]
    for name in names:
        create(daemon, "sh", "-c", "exec sleep 1000", name=name)
    bad: list[tuple[str, int, bytes]] = []

    def client(seed: int) -> None:
        choose = random.Random(seed)
        for _ in range(12):
            name = choose.choice(names)
            verb = choose.choice(
                ["start", "start", "stop?t=0", "kill", "pause", "unpause", "restart?t=0", "remove", "create"]
            )
            if verb == "remove":
                answer = daemon.http("DELETE", f"/containers/{name}?force={choose.choice([0, 1])}")
            elif verb == "create":
                body = {"Image": "busybox", "Cmd": ["sleep", "1000"]}
                answer = daemon.http("POST", f"/containers/create?name={name}", body)
            else:
                answer = post(daemon, name, verb)
            if answer.status not in (201, 204, 304, 404, 409):
                bad.append((verb, answer.status, answer.body))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(client, range(6)))
    assert bad == []
    for found in daemon.http("GET", "/containers/json?all=1").json():
        assert found["State"] in LEGAL
        assert daemon.http("DELETE", f"/containers/{found['Id']}?force=1").status == 204
    assert daemon.http("GET", "/containers/json?all=1").json() == []
    assert list((daemon.config.data_root / "containers").iterdir()) == []


def test_a_client_that_leaves_does_not_stop_the_change(daemon: Daemon):
    container = ready(daemon, IGNORES_TERM)
    with RawClient(daemon.raw()) as client:
        client.request("POST", f"/containers/{container}/stop?t=1")
    assert ended(daemon, container) == 137


def test_docker_inspect_shows_both_times(daemon: Daemon):
    container = started(daemon, "true")
    ended(daemon, container)
    found = json.loads(daemon.docker("inspect", container).stdout)[0]["State"]
    assert found["FinishedAt"] >= found["StartedAt"] > "2020"
