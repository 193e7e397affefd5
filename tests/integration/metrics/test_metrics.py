"""A real daemon's metrics: what it says of itself, and Debian's Prometheus that asks for it and answers a query."""

import json
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import Daemon
from tests.support.free_ports import free_port
from tests.support.waiting import until

PATIENCE = 10


@pytest.fixture(scope="module")
def measured() -> Iterator[tuple[Daemon, str]]:
    address = f"127.0.0.1:{free_port()}"
    with Daemon("--metrics-addr", address) as daemon:
        yield daemon, f"http://{address}/metrics"


def scrape(url: str) -> dict[str, float]:
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        lines = answer.read().decode().splitlines()
    pairs = (line.rpartition(" ")[::2] for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


def test_a_container_and_its_start_are_told(measured: tuple[Daemon, str]) -> None:
    daemon, url = measured
    id = daemon.docker("run", "-d", "--name", "measured", "busybox", "sleep", "600").stdout.strip()
    labels = f'{{id="{id[:12]}",image="busybox",name="measured"}}'
    found = scrape(url)
    assert found['engine_daemon_container_states_containers{state="running"}'] == 1
    assert found['husk_container_start_seconds_count{outcome="ok"}'] == 1
    assert found['engine_daemon_container_actions_seconds_count{action="create"}'] == 1
    assert found[f"husk_container_memory_usage_bytes{labels}"] > 0
    assert found[f"husk_container_cpu_seconds_total{labels}"] > 0
    assert found[f"husk_container_processes{labels}"] == 1
    assert found[f"husk_container_network_receive_bytes_total{labels}"] >= 0
    assert found['husk_api_request_seconds_count{code="204",method="POST",route="/containers/{id}/start"}'] == 1
    assert found["engine_daemon_events_total"] >= 2
    assert found["husk_store_images"] >= 1
    assert found["husk_store_state_bytes"] > 0
    daemon.docker("rm", "-f", "measured")
    found = scrape(url)
    assert found['engine_daemon_container_states_containers{state="running"}'] == 0
    assert found['engine_daemon_container_actions_seconds_count{action="delete"}'] == 1
    assert not [name for name in found if name.startswith("husk_container_memory_usage_bytes{")]


def test_no_path_that_a_client_makes_up_becomes_a_label(measured: tuple[Daemon, str]) -> None:
    daemon, url = measured
    for number in range(3):
        assert daemon.http("GET", f"/containers/made-up-{number}/json").status == 404
        assert daemon.http("GET", f"/made/up/{number}").status == 404
    found = scrape(url)
    assert not [name for name in found if "made" in name]
    assert found['husk_api_request_seconds_count{code="404",method="GET",route="/containers/{id}/json"}'] == 3
    assert found['husk_api_request_seconds_count{code="404",method="GET",route="none"}'] == 3


def test_a_port_that_is_taken_keeps_the_daemon_from_starting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        daemon = Daemon("--metrics-addr", address)
        try:
            with pytest.raises(AssertionError, match=f"cannot listen on tcp://{address}: .* with --metrics-addr"):
                daemon.start()
            assert "Traceback" not in daemon.log()
        finally:
            daemon.arguments = ()
            daemon.close()


def test_prometheus_scrapes_it_and_answers_a_query(measured: tuple[Daemon, str], tmp_path: Path) -> None:
    daemon, url = measured
    prometheus = shutil.which("prometheus")
    assert prometheus, "scripts/setup --test brings Debian's prometheus"
    target = url.removeprefix("http://").removesuffix("/metrics")
    rules = Path(__file__).parents[3] / "packaging/prometheus-rules.yml"
    settings = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "scrape_configs": [{"job_name": "husk", "static_configs": [{"targets": [target]}]}],
    }
    (tmp_path / "prometheus.yml").write_text(json.dumps(settings))
    where = f"127.0.0.1:{free_port()}"
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [prometheus, f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data",
             f"--web.listen-address={where}", "--web.enable-lifecycle"],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=tmp_path,
        )  # fmt: skip
    try:

        def ask(query: str) -> list[Any]:
            try:
                with urllib.request.urlopen(
                    f"http://{where}/api/v1/query?query={urllib.parse.quote(query)}", timeout=PATIENCE
                ) as answer:
                    return list(json.loads(answer.read())["data"]["result"])
            except (urllib.error.URLError, ConnectionError):
                assert process.poll() is None, (tmp_path / "log").read_text()
                return []

        (up,) = until(lambda: ask('up{job="husk"} == 1'), "Prometheus has scraped the daemon")
        assert up["metric"]["instance"] == target
        (info,) = until(lambda: ask("engine_daemon_engine_info"), "Prometheus knows the engine")
        version = daemon.http("GET", "/version").json()["Version"]
        assert info["metric"]["version"] == version
        assert ask('histogram_quantile(0.5, husk_api_request_seconds_bucket{route="/_ping"})')
        with urllib.request.urlopen(f"http://{where}/api/v1/rules", timeout=PATIENCE) as answer:
            groups = json.loads(answer.read())["data"]["groups"]
        assert [rule["name"] for rule in groups[0]["rules"] if rule["health"] == "err"] == []
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
