"""`docker stats`: what a container uses, once and as a stream."""

import contextlib
import json

from tests.support.daemon import Daemon
from tests.support.waiting import until

ZERO = "0001-01-01T00:00:00Z"


def stats(daemon: Daemon, name: str, query: str = "stream=0") -> dict:
    answer = daemon.http("GET", f"/containers/{name}/stats?{query}")
    assert answer.status == 200, answer.body
    return answer.json()


def test_the_whole_shape(daemon: Daemon):
    daemon.docker("run", "-d", "--name", "box", "-m", "64m", "--pids-limit", "20", "busybox", "sleep", "1000")
    found = stats(daemon, "box")
    assert found["name"] == "/box"
    assert len(found["id"]) == 64
    assert ZERO < found["preread"] < found["read"]
    assert found["cpu_stats"]["cpu_usage"]["total_usage"] > 0
    assert found["cpu_stats"]["system_cpu_usage"] > found["precpu_stats"]["system_cpu_usage"] > 0
    assert found["cpu_stats"]["online_cpus"] >= 1
    assert set(found["cpu_stats"]["throttling_data"]) == {"periods", "throttled_periods", "throttled_time"}
    assert 0 < found["memory_stats"]["usage"] < found["memory_stats"]["limit"] == 64 << 20
    assert "inactive_file" in found["memory_stats"]["stats"]
    assert found["pids_stats"] == {"current": 1, "limit": 20}
    assert set(found["networks"]) == {"eth0"}
    assert set(found["networks"]["eth0"]) == {
        f"{way}_{what}" for way in ("rx", "tx") for what in ("bytes", "packets", "errors", "dropped")
    }
    assert isinstance(found["blkio_stats"]["io_service_bytes_recursive"], list)
    assert (found["num_procs"], found["storage_stats"]) == (0, {})


def test_one_shot_has_no_past(daemon: Daemon):
    daemon.docker("run", "-d", "--name", "box", "busybox", "sleep", "1000")
    found = stats(daemon, "box", "stream=0&one-shot=1")
    assert found["preread"] == ZERO
    assert found["precpu_stats"]["cpu_usage"]["total_usage"] == 0
    assert "system_cpu_usage" not in found["precpu_stats"]
    assert found["memory_stats"]["usage"] > 0
    assert daemon.http("GET", "/containers/box/stats?stream=1&one-shot=1").status == 400


def test_a_container_that_does_not_run_uses_nothing(daemon: Daemon):
    daemon.docker("create", "--name", "box", "busybox")
    found = stats(daemon, "box")
    assert (found["read"], found["memory_stats"], found["pids_stats"]) == (ZERO, {}, {})
    assert found["blkio_stats"]["io_service_bytes_recursive"] is None
    assert "networks" not in found
    assert daemon.http("GET", "/containers/nobody/stats").status == 404


def test_networks_are_those_of_the_container(daemon: Daemon):
    daemon.docker("run", "-d", "--name", "own", "busybox", "sleep", "1000")
    daemon.docker("run", "-d", "--name", "hosts", "--network", "host", "busybox", "sleep", "1000")
    daemon.docker("run", "-d", "--name", "none", "--network", "none", "busybox", "sleep", "1000")
    before = stats(daemon, "own", "stream=0&one-shot=1")["networks"]["eth0"]["tx_packets"]
    daemon.docker("exec", "own", "ping", "-c", "3", "-i", "0.2", daemon.config.bip.partition("/")[0], check=False)
    assert stats(daemon, "own", "stream=0&one-shot=1")["networks"]["eth0"]["tx_packets"] > before
    assert "networks" not in stats(daemon, "hosts", "stream=0&one-shot=1")
    assert "networks" not in stats(daemon, "none", "stream=0&one-shot=1")


def test_a_stream_follows_the_container_from_one_run_to_the_next(daemon: Daemon):
    daemon.docker("run", "-d", "--name", "box", "busybox", "sleep", "1000")
    with contextlib.closing(daemon.connection()) as connection:
        connection.request("GET", "/containers/box/stats")
        response = connection.getresponse()
        assert response.getheader("Content-Type") == "application/json"
        first, second = (json.loads(response.readline()) for _ in range(2))
        assert second["preread"] == first["read"]
        assert first["memory_stats"]["usage"] > 0
        daemon.docker("kill", "box")
        until(lambda: json.loads(response.readline())["memory_stats"] == {}, "it uses nothing any more")
        daemon.docker("start", "box")
        until(lambda: json.loads(response.readline())["memory_stats"], "it uses something again")
        daemon.docker("rm", "-f", "box")
        while response.readline():
            pass


def test_processor_time_shows(daemon: Daemon):
    daemon.docker("run", "-d", "--name", "busy", "busybox", "sh", "-c", "while :; do :; done")
    found = stats(daemon, "busy")
    used = found["cpu_stats"]["cpu_usage"]["total_usage"] - found["precpu_stats"]["cpu_usage"]["total_usage"]
    assert used > 10_000_000


def test_the_docker_command_prints_it(daemon: Daemon):
    daemon.docker("run", "-d", "--name", "box", "-m", "64m", "busybox", "sleep", "1000")
    line = daemon.docker(
        "stats", "--no-stream", "--format", "{{.Name}}|{{.CPUPerc}}|{{.MemUsage}}|{{.PIDs}}|{{.NetIO}}"
    )
    name, cpu, memory, pids, network = line.stdout.strip().split("|")
    assert (name, pids) == ("box", "1")
    assert cpu.endswith("%") and cpu != "--"
    assert memory.endswith("/ 64MiB")
    assert " / " in network
