"""Everything at once, on one container: it ends in a legal state, and nobody waits for ever."""

import json
import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import IncompleteRead

import pytest

from tests.support.daemon import Daemon
from tests.support.free_ports import free_port
from tests.support.lifecycle import (
    IGNORES_TERM,
    create,
    ended,
    logs,
    post,
    ready,
    started,
)
from tests.support.waiting import until
from tests.support.wire import RawClient

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


def test_of_a_crowd_nothing_is_left_though_the_daemon_is_killed_before_it_has_cleared_up(fresh_daemon: Daemon):
    daemon = fresh_daemon
    _remove_a_crowd(daemon)
    daemon.kill9()
    daemon.start()
    until(lambda: not _left(daemon), "that the next daemon has cleared up")
    daemon.check_no_litter()


def test_of_a_crowd_nothing_is_left_a_moment_later(fresh_daemon: Daemon):
    _remove_a_crowd(fresh_daemon)
    until(lambda: not _left(fresh_daemon), "that all is cleared up")
    fresh_daemon.check_no_litter()


def _remove_a_crowd(daemon: Daemon) -> None:
    crowd = [create(daemon, host={"NetworkMode": "none"}) for _ in range(16)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda container: post(daemon, container, "start"), crowd))
        removed = pool.map(lambda container: daemon.http("DELETE", f"/containers/{container}?force=1").status, crowd)
        assert set(removed) == {204}


def _left(daemon: Daemon) -> list[str]:
    """The ids of containers that something is left of on the disk."""
    run, data = daemon.config.exec_root, daemon.config.data_root
    tops = (run / "containers", data / "containers", *(run / "runtimes").iterdir())
    return [name for top in tops for name in os.listdir(top) if len(name) == 64]


def test_creations_with_one_name_at_once(daemon: Daemon):
    def attempt(_: int) -> int:
        return daemon.http("POST", "/containers/create?name=only-one", {"Image": "busybox"}).status

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(attempt, range(8))) == [201] + [409] * 7


def test_a_forced_removal_wins_against_a_start(daemon: Daemon):
    for _ in range(5):
        container = create(daemon)
        starting = threading.Thread(daemon=True, target=post, args=(daemon, container, "start"))
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


def test_looking_at_containers_that_come_and_go(daemon: Daemon):
    """A client that looks at one in the moment of its end is told that it is not there, not that something broke."""
    looks = ["attach?stream=1&stdout=1", "resize?h=9&w=9"]
    reads = [
        "archive?path=/etc",
        "changes",
        "export",
        "logs?stdout=1",
        "stats?stream=0&one-shot=1",
        "top",
        "json?size=1",
    ]
    over = threading.Event()
    bad: list[tuple[str, int, bytes]] = []

    def come_and_go() -> None:
        try:
            for _ in range(12):
                started(daemon, "true", name="brief", host={"NetworkMode": "none"})
                post(daemon, "brief", "wait")
                daemon.http("DELETE", "/containers/brief?force=1")
        finally:
            over.set()

    def look(seed: int) -> None:
        choose = random.Random(seed)
        while not over.is_set():
            what = choose.choice(looks + reads)
            try:
                answer = daemon.http("POST" if what in looks else "GET", f"/containers/brief/{what}")
            except IncompleteRead:
                assert what.startswith(("archive", "export")), what  # its files went in the middle of the answer
                continue
            if answer.status not in (200, 404, 409):
                bad.append((what, answer.status, answer.body[:200]))

    with ThreadPoolExecutor(4) as pool:
        tasks = [pool.submit(come_and_go), *(pool.submit(look, seed) for seed in range(3))]
        for task in tasks:
            task.result()
    assert bad == []


def test_who_attaches_in_the_moment_of_removal_does_not_wait_for_ever(daemon: Daemon):
    over = threading.Event()

    def attach() -> None:
        while not over.is_set():
            answer = daemon.http("POST", "/containers/brief/attach?stream=1&stdout=1", timeout=20)
            assert answer.status in (200, 404), answer.body

    with ThreadPoolExecutor(6) as pool:
        clients = [pool.submit(attach) for _ in range(6)]
        try:
            for _ in range(60):
                create(daemon, name="brief")
                daemon.http("DELETE", "/containers/brief")
        finally:
            over.set()
        for client in clients:
            client.result()


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


@pytest.mark.parametrize("end", ["stop?t=0", "kill", "wait"])
def test_who_heard_of_the_end_may_have_its_port(daemon: Daemon, end: str):
    """One after the other on one port: none is refused because the one before it is not quite gone."""
    command = ("true",) if end == "wait" else ("sleep", "1000")
    host = {"PortBindings": {"80/tcp": [{"HostPort": str(free_port())}]}}
    containers = [create(daemon, *command, host=host) for _ in range(6)]
    for container in containers:
        answer = post(daemon, container, "start")
        assert answer.status == 204, answer.body
        post(daemon, container, end)


def test_the_network_is_left_before_the_end_is_told(daemon: Daemon):
    since = f"{time.time():.6f}"
    ended(daemon, started(daemon, "true"))
    lines = daemon.http("GET", f"/events?since={since}&until={time.time():.6f}").body.splitlines()
    actions = [json.loads(line)["Action"] for line in lines]
    assert actions.index("disconnect") < actions.index("die")
