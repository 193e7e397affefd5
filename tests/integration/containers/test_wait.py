"""Waiting for the end of a container, each of its conditions."""

from tests.support.daemon import Daemon
from tests.support.lifecycle import create, ended, post, started, wait_head


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
