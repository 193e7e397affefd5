"""Many containers by many clients at once: every answer is right, and nothing is left."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support.daemon import Answer, Daemon
from tests.support.waiting import until

CONTAINERS = 150
AT_THE_SAME_TIME = 60
CLIENTS = 16


def test_many_containers_by_sixteen_clients(fresh_daemon: Daemon) -> None:
    daemon = fresh_daemon

    def ask(method: str, path: str, *expected: int, body: object = None) -> Answer:
        answer = daemon.http(method, path, body)
        assert answer.status in expected, f"{method} {path}: {answer.status} {answer.body!r}"
        return answer

    def life(number: int) -> None:
        script = f"echo {number}; exec sleep 600" if number % 2 else f"echo {number}; exit 3"
        path = f"/containers/load{number}"
        created = ask(
            "POST",
            f"/containers/create?name=load{number}",
            201,
            body={"Image": "busybox", "Cmd": ["sh", "-c", script], "Labels": {"n": str(number)}},
        ).json()["Id"]
        ask("POST", f"{path}/start", 204)
        shown = ask("GET", f"{path}/json", 200).json()
        assert shown["Id"] == created and shown["Config"]["Labels"] == {"n": str(number)}
        assert created in {c["Id"] for c in ask("GET", "/containers/json?all=1", 200).json()}
        if number % 2:
            assert ask("POST", f"{path}/stop?t=0", 204)
        code = ask("POST", f"{path}/wait", 200).json()["StatusCode"]
        assert code == (137 if number % 2 else 3)
        if not number % 2:
            logs = ask("GET", f"{path}/logs?stdout=1", 200).body
            assert logs[8:] == f"{number}\n".encode()
        ask("DELETE", f"{path}?force=1", 204)
        ask("GET", f"{path}/json", 404)

    with ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(life, range(CONTAINERS)))
    assert daemon.http("GET", "/containers/json?all=1").json() == []
    daemon.check_no_litter()
    assert os.listdir(daemon.config.data_root / "containers") == []
    assert os.listdir(daemon.config.exec_root / "containers") == []
    log = daemon.log_path.read_text()
    assert "level=error" not in log and "Traceback" not in log
    # Sockets of idle connections close a moment later.
    until(lambda: _descriptors(daemon) < 60, "descriptors are given back")


def test_sixty_containers_at_the_same_time(fresh_daemon: Daemon) -> None:
    daemon = fresh_daemon

    def start(number: int) -> str:
        made = daemon.http("POST", "/containers/create", {"Image": "busybox", "Cmd": ["sleep", "600"]}).json()["Id"]
        assert daemon.http("POST", f"/containers/{made}/start").status == 204
        return str(made)

    with ThreadPoolExecutor(CLIENTS) as clients:
        made = list(clients.map(start, range(AT_THE_SAME_TIME)))
        running = daemon.http("GET", "/containers/json").json()
        assert {container["Id"] for container in running} == set(made)
        addresses = {c["NetworkSettings"]["Networks"]["bridge"]["IPAddress"] for c in running}
        assert len(addresses) == AT_THE_SAME_TIME
        removed = clients.map(lambda name: daemon.http("DELETE", f"/containers/{name}?force=1").status, made)
        assert set(removed) == {204}
    daemon.check_no_litter()


def _descriptors(daemon: Daemon) -> int:
    return len(os.listdir(Path("/proc", str(daemon.pid), "fd")))
