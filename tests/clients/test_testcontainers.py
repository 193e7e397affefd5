"""testcontainers (PyPI) with Husk as its engine: it starts containers for somebody's tests, and cleans up after them.

Its reaper, a container that removes what a killed test run left, is off: it is an image of the Internet.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from docker.errors import APIError, ImageNotFound
from testcontainers.compose import DockerCompose
from testcontainers.core.container import DockerContainer, ExecConfig
from testcontainers.core.network import Network
from testcontainers.core.wait_strategies import (
    ExecWaitStrategy,
    FileExistsWaitStrategy,
    HealthcheckWaitStrategy,
    HttpWaitStrategy,
    LogMessageWaitStrategy,
    PortWaitStrategy,
)

from tests.support.compose import Project, require_compose
from tests.support.daemon import Daemon

SERVER = ["sh", "-c", "cd /tmp; echo hello > index.html; echo 'ready to serve'; exec httpd -f -p 8080 -h /tmp"]
SOON = 0.02


@pytest.fixture(autouse=True)
def engine(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    """The daemon that testcontainers finds; everything of a test is gone when it ends."""
    monkeypatch.setenv("DOCKER_HOST", daemon.host)
    monkeypatch.setenv("DOCKER_CONFIG", daemon.environment["DOCKER_CONFIG"])
    monkeypatch.setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
    yield daemon
    assert daemon.docker("ps", "-aq").stdout == ""
    assert daemon.docker("volume", "ls", "-q").stdout == ""
    assert daemon.docker("network", "ls", "-q", "--filter", "type=custom").stdout == ""


def box(*command: str) -> DockerContainer:
    return DockerContainer("busybox", init=True).with_command(list(command or ("sleep", "600")))


def get(container: DockerContainer, port: int) -> str:
    with urlopen(
        f"http://{container.get_container_host_ip()}:{container.get_exposed_port(port)}/", timeout=10
    ) as answer:
        return str(answer.read().decode())


def test_a_server_with_an_exposed_port() -> None:
    ready = LogMessageWaitStrategy("ready to serve").with_poll_interval(SOON)
    serving = HttpWaitStrategy(8080).for_status_code(200).with_poll_interval(SOON)
    with box(*SERVER).with_exposed_ports(8080).waiting_for(ready) as container:
        serving.wait_until_ready(container)
        assert get(container, 8080) == "hello\n"
        assert container.get_logs() == (b"ready to serve\n", b"")
        wrapped = container.get_wrapped_container()
        assert wrapped.status in ("created", "running")
        assert wrapped.labels["org.testcontainers"] == "true"


def test_two_of_them_get_ports_of_their_own() -> None:
    listening = PortWaitStrategy(8080).with_poll_interval(SOON)
    with (
        box(*SERVER).with_exposed_ports("8080/tcp").waiting_for(listening) as one,
        box(*SERVER).with_bind_ports("8080/tcp").waiting_for(listening) as other,
    ):
        assert one.get_exposed_port(8080) != other.get_exposed_port(8080)
        assert get(one, 8080) == get(other, 8080) == "hello\n"


def test_the_other_ways_to_wait(tmp_path: Path) -> None:
    check = {"test": ["CMD", "test", "-e", "/shared/up"], "interval": 50_000_000, "retries": 200}
    script = "echo failed to connect >&2; sleep 0.2; touch /shared/up; echo database is up >&2; exec sleep 600"
    container = DockerContainer("busybox", init=True, healthcheck=check)
    container.with_command(["sh", "-c", script]).with_volume_mapping(tmp_path, "/shared", "rw")
    with container:
        for strategy in (
            LogMessageWaitStrategy("database .* up"),
            HealthcheckWaitStrategy(),
            ExecWaitStrategy(["test", "-e", "/shared/up"]),
            FileExistsWaitStrategy(tmp_path / "up"),
        ):
            strategy.with_poll_interval(SOON).wait_until_ready(container)
        assert container.get_logs()[1] == b"failed to connect\ndatabase is up\n"


def test_waiting_in_vain_cleans_up(engine: Daemon) -> None:
    never = LogMessageWaitStrategy("never said").with_poll_interval(SOON).with_startup_timeout(1)
    with pytest.raises(TimeoutError), box("sh", "-c", "echo something else; sleep 600").waiting_for(never):
        pass
    assert engine.docker("ps", "-aq").stdout == ""


def test_exec() -> None:
    with box().with_env("A", "1") as container:
        result = container.exec(["sh", "-c", "echo $A; echo err >&2; exit 3"])
        assert result.exit_code == 3 and sorted(result.output.splitlines()) == [b"1", b"err"]
        assert container.exec("echo one two").output == b"one two\n"
        config = ExecConfig(["sh", "-c", "id -u; pwd; echo $B"], user="33", workdir="/tmp", environment={"B": "2"})
        assert container.exec(config).output == b"33\n/tmp\n2\n"


def test_files_go_in_and_come_out(tmp_path: Path) -> None:
    (tmp_path / "seed.sql").write_text("create table")
    container = box().with_copy_into_container(tmp_path / "seed.sql", "/seed/seed.sql")
    with container.with_copy_into_container(b"content", "/etc/app.conf", 0o600):
        assert container.exec("cat /seed/seed.sql").output == b"create table"
        assert container.exec("stat -c %a /etc/app.conf").output == b"600\n"
        container.copy_into_container(b"while it runs", "/later")
        container.copy_from_container("/later", tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == b"while it runs"


def test_volumes(engine: Daemon, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("from the host")
    try:
        for script in ("cat /in/file; echo kept > /data/file; touch /in/x || true", "cat /data/file"):
            container = box().with_volume_mapping(tmp_path, "/in").with_volume_mapping("data", "/data", "rw")
            with container.with_tmpfs_mount("/scratch", "size=1m"):
                output = container.exec(["sh", "-c", script]).output.decode()
                assert "tmpfs /scratch" in container.exec("cat /proc/mounts").output.decode()
            assert output.strip() in ("from the hosttouch: /in/x: Read-only file system", "kept")
        assert os.listdir(tmp_path) == ["file"]
    finally:
        engine.docker("volume", "rm", "data")


def test_networks() -> None:
    with (
        Network() as network,
        box(*SERVER).with_network(network).with_network_aliases("server", "api") as server,
        box().with_network(network) as client,
        box() as stranger,
    ):
        LogMessageWaitStrategy("ready").with_poll_interval(SOON).wait_until_ready(server)
        ExecWaitStrategy(["wget", "-q", "-O-", "http://api:8080/"]).with_poll_interval(SOON).wait_until_ready(client)
        assert client.exec("wget -q -O- http://server:8080/").output == b"hello\n"
        assert stranger.exec("nslookup server").exit_code == 1
        network.connect(stranger.get_container_id(), ["late"])
        assert stranger.exec("wget -q -O- http://server:8080/").output == b"hello\n"
        assert client.exec("ping -c1 -W5 late").exit_code == 0


def test_what_cannot_start_is_an_error_and_leaves_nothing() -> None:
    with pytest.raises(APIError, match="no-such-program"), box("no-such-program").with_kwargs():
        pass
    with pytest.raises((ImageNotFound, APIError)), DockerContainer("127.0.0.1:1/no/such-image"):
        pass


def test_a_compose_project(engine: Daemon, tmp_path: Path) -> None:
    require_compose()
    project = Project(engine, tmp_path)
    project.write({"services": {"web": {"image": "busybox", "init": True, "command": SERVER, "ports": ["8080"]}}})
    ready = LogMessageWaitStrategy("ready to serve").with_poll_interval(SOON)
    with DockerCompose(tmp_path, wait=False).waiting_for({"web": ready}) as compose:
        host, port = compose.get_service_host_and_port("web", 8080)
        url = f"http://{host}:{port}/"
        compose.wait_for(url)
        with urlopen(url, timeout=10) as answer:
            assert answer.read() == b"hello\n"
        assert compose.exec_in_container(["echo", "hi"], "web")[0].strip() == "hi"
        assert "ready to serve" in compose.get_logs("web")[0]
