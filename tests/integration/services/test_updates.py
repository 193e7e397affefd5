"""The way of a service from one template to the next."""

import threading
import urllib.request

from tests.support.free_ports import free_port
from tests.support.swarm import Swarm
from tests.support.waiting import until

FAST = ("--update-monitor", "300ms", "--rollback-monitor", "300ms")
FAILING = ("--args", "/no/such/program")


def variables(swarm: Swarm, name: str) -> list[str]:
    found = (
        swarm.daemon.http("GET", f"/containers/{id}/json").json()["Config"]["Env"] for id in swarm.containers(name)
    )
    return sorted(entry for env in found for entry in env if entry.startswith("A="))


def test_a_rolling_update_goes_slot_by_slot(swarm: Swarm) -> None:
    swarm.create("web", "--replicas", "3", "--env", "A=1", *FAST)
    before = swarm.settles("web", 3)
    swarm.update("web", "--env-add", "A=2")
    fewest = [3]

    def completed() -> bool:
        fewest.append(len(swarm.containers("web")))
        return swarm.update_state("web") == "completed"

    done = until(completed, "it completes")
    assert done and min(fewest) >= 2, "one at a time"
    assert not set(swarm.settles("web", 3)) & set(before)
    assert variables(swarm, "web") == ["A=2"] * 3
    status = swarm.inspect("web")["UpdateStatus"]
    assert status["Message"] == "update completed" and status["StartedAt"] < status["CompletedAt"]
    assert swarm.states("web").count("shutdown") == 3


def test_all_at_once(swarm: Swarm) -> None:
    swarm.create("web", "--replicas", "3", "--env", "A=1", "--update-parallelism", "0", *FAST)
    swarm.settles("web", 3)
    swarm.update("web", "--env-add", "A=2")
    until(lambda: variables(swarm, "web") == ["A=2"] * 3, "all are replaced")
    until(lambda: swarm.update_state("web") == "completed", "it completes")


def test_start_first_never_has_fewer(swarm: Swarm) -> None:
    swarm.create("web", "--replicas", "2", "--env", "A=1", "--update-order", "start-first", *FAST)
    swarm.settles("web", 2)
    swarm.update("web", "--env-add", "A=2")
    counts: list[int] = []

    def completed() -> bool:
        counts.append(len(swarm.containers("web")))
        return swarm.update_state("web") == "completed"

    until(completed, "it completes")
    assert min(counts) >= 2
    assert variables(swarm, "web") == ["A=2"] * 2
    swarm.settles("web", 2)


def test_the_client_follows_an_update(swarm: Swarm) -> None:
    swarm.create("web", "--replicas", "2", *FAST)
    swarm.settles("web", 2)
    done = swarm.daemon.docker("service", "update", "--no-resolve-image", "--env-add", "A=2", "web")
    assert "converged" in done.stdout
    done = swarm.daemon.docker("service", "update", "--force", "--no-resolve-image", "web")
    assert "converged" in done.stdout


def test_a_failing_update_pauses(swarm: Swarm) -> None:
    swarm.create("web", "--replicas", "3", *FAST)
    before = swarm.settles("web", 3)
    swarm.update("web", "--restart-condition", "none", *FAILING)
    until(lambda: swarm.update_state("web") == "paused", "it is noticed")
    assert (
        "update paused due to failure or early termination of task" in swarm.inspect("web")["UpdateStatus"]["Message"]
    )
    assert len(set(swarm.containers("web")) & set(before)) == 2, "the others are left alone"
    said = swarm.daemon.docker("service", "inspect", "--pretty", "web").stdout
    assert "paused" in said


def test_a_failing_update_is_rolled_back(swarm: Swarm) -> None:
    swarm.create("web", "--replicas", "3", "--env", "A=1", "--update-failure-action", "rollback", *FAST)
    before = swarm.settles("web", 3)
    swarm.update("web", "--env-add", "A=2", *FAILING)
    until(lambda: swarm.update_state("web") == "rollback_completed", "it is rolled back")
    after = swarm.settles("web", 3)
    assert variables(swarm, "web") == ["A=1"] * 3
    assert len(set(after) & set(before)) == 2, "what was never touched is not restarted"
    assert "PreviousSpec" not in swarm.inspect("web")


def test_a_failing_update_may_go_on(swarm: Swarm) -> None:
    swarm.create("web", "--replicas", "2", "--update-failure-action", "continue", *FAST)
    before = swarm.settles("web", 2)
    swarm.update("web", *FAILING)
    until(lambda: not set(swarm.containers("web")) & set(before), "all are replaced, for better or worse")


def test_rollback_by_hand(swarm: Swarm) -> None:
    swarm.create("web", "--replicas", "2", "--env", "A=1", *FAST)
    swarm.settles("web", 2)
    swarm.update("web", "--env-add", "A=2")
    until(lambda: swarm.update_state("web") == "completed", "it completes")
    swarm.daemon.docker("service", "rollback", "-d", "web")
    until(lambda: swarm.update_state("web") == "rollback_completed", "it is back")
    assert variables(swarm, "web") == ["A=1"] * 2
    swarm.daemon.docker("service", "update", "-d", "--rollback", "web")
    until(lambda: variables(swarm, "web") == ["A=2"] * 2, "and forth")


def test_a_new_task_counts_when_it_is_healthy(swarm: Swarm) -> None:
    health = ("--health-interval", "100ms", "--health-retries", "3")
    swarm.create("web", "--update-order", "start-first", *health, "--health-cmd", "true", *FAST)
    before = swarm.settles("web", 1)
    swarm.update("web", "--health-cmd", "test -e /ready", "--health-start-period", "60s", "--env-add", "A=2")
    new = until(lambda: set(swarm.containers("web")) - set(before), "the new one is there").pop()
    assert set(before) < set(swarm.containers("web")), "the old one stays until the new one is healthy"
    until(lambda: "starting" in swarm.states("web"), "it is known to start")
    swarm.daemon.docker("exec", new, "touch", "/ready")
    until(lambda: swarm.update_state("web") == "completed", "it completes")
    assert swarm.settles("web", 1) == [new]


def test_an_unhealthy_task_is_replaced(swarm: Swarm) -> None:
    health = ("--health-interval", "100ms", "--health-retries", "2", "--health-cmd", "test ! -e /sick")
    swarm.create("web", *health)
    [container] = swarm.settles("web", 1)
    swarm.daemon.docker("exec", container, "touch", "/sick")
    until(lambda: container not in swarm.containers("web"), "it is stopped")
    swarm.settles("web", 1)
    failed = next(task for task in swarm.tasks("web") if task["Status"]["State"] == "failed")
    assert "unhealthy" in failed["Status"]["Err"]


def test_nobody_notices_an_update_that_starts_first(swarm: Swarm) -> None:
    """Requests go on all the time while every task is replaced, twice: each is answered."""
    port = free_port()
    server = ("sh", "-c", "mkdir /www; echo fine > /www/page; exec httpd -f -p 80 -h /www")
    health = ("--health-cmd", "wget -qO- http://127.0.0.1/page", "--health-interval", "100ms")
    order = ("--update-order", "start-first", "--update-monitor", "100ms", "--stop-grace-period", "1s")
    options = ("--replicas", "2", "--publish", f"{port}:80", *order, *health)
    swarm.create("web", *options, args=server)
    before = swarm.settles("web", 2)
    stop, answers = threading.Event(), list[str]()

    def answer() -> str:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/page", timeout=20) as page:
                return str(page.read().decode())
        except OSError as error:
            return repr(error)

    def ask() -> None:
        while not stop.wait(0.005):
            answers.append(answer())

    until(lambda: answer() == "fine\n", "it is reached")
    asking = threading.Thread(daemon=True, target=ask)
    asking.start()
    try:
        for number in range(2):
            swarm.update("web", "--env-add", f"A={number}")
            until(lambda: swarm.update_state("web") == "completed", "it completes")
    finally:
        stop.set()
        asking.join()
    assert not set(swarm.settles("web", 2)) & set(before)
    assert len(answers) > 20 and set(answers) == {"fine\n"}
