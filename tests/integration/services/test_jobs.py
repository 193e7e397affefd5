"""Services that are to complete: jobs."""

from tests.support.swarm import Swarm
from tests.support.waiting import until


def test_a_job_runs_to_its_end_and_no_more(swarm: Swarm) -> None:
    daemon = swarm.daemon
    said = daemon.docker(
        "service", "create", "--name", "job", "--mode", "replicated-job", "--replicas", "4", "--max-concurrent", "2",
        "--no-resolve-image", "busybox", "true",
    ).stdout  # fmt: skip
    assert "complete" in said
    assert swarm.states("job") == ["complete"] * 4
    assert daemon.docker("service", "ls", "--format", "{{.Replicas}}").stdout.strip() == "0/2 (4/4 completed)"
    status = swarm.inspect("job")["JobStatus"]
    assert status["LastExecution"]


def test_no_more_than_asked_for_run_at_once(swarm: Swarm) -> None:
    swarm.create("job", "--mode", "replicated-job", "--replicas", "5", "--max-concurrent", "2", args=["sleep", "0.5"])
    seen: list[int] = []

    def all_complete() -> bool:
        seen.append(len(swarm.live("job")))
        return swarm.states("job") == ["complete"] * 5

    until(all_complete, "all complete")
    assert 1 <= max(seen) <= 2


def test_a_failed_try_is_repeated(swarm: Swarm) -> None:
    options = ("--mode", "replicated-job", "--restart-max-attempts", "2", "--restart-condition", "on-failure")
    swarm.create("job", *options, args=["false"])
    until(lambda: swarm.states("job") == ["failed"] * 3, "once, and two more times")


def test_a_change_runs_the_job_again(swarm: Swarm) -> None:
    swarm.create("job", "--mode", "replicated-job", args=["true"])
    until(lambda: swarm.states("job") == ["complete"], "it completes")
    before = swarm.inspect("job")["JobStatus"]["JobIteration"].get("Index", 0)
    swarm.update("job", "--force")
    until(lambda: swarm.states("job") == ["complete"] * 2, "it completes again")
    assert swarm.inspect("job")["JobStatus"]["JobIteration"].get("Index", 0) > before


def test_a_job_on_every_node(swarm: Swarm) -> None:
    swarm.create("job", "--mode", "global-job", args=["true"])
    until(lambda: swarm.states("job") == ["complete"], "it completes")
    assert swarm.daemon.docker("service", "ls", "--format", "{{.Mode}}").stdout.strip() == "global job"
