"""The daemon as a process: how it starts, ends, reloads, and shares a host with others."""

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.waiting import wait_until


def test_it_says_where_it_listens_and_the_line_to_paste(fresh_daemon):
    log = fresh_daemon.log_path.read_text()
    assert f"Husk listens on {fresh_daemon.host}\n" in log
    assert f"export DOCKER_HOST={fresh_daemon.host}\n" in log


def test_it_keeps_the_subnet_that_it_chose(image):
    def subnet(daemon: Daemon) -> str:
        return daemon.docker("network", "inspect", "-f", "{{(index .IPAM.Config 0).Subnet}}", "bridge").stdout

    with Daemon(choose_subnet=True) as daemon:
        daemon.restart()  # nobody was on its bridge: another daemon may have taken the subnet meanwhile
        first = subnet(daemon)
        daemon.docker("run", "-d", image, "sleep", "1000")
        daemon.restart()
        assert subnet(daemon) == first
        daemon.kill9()
        daemon.start()
        assert subnet(daemon) == first
        assert daemon.docker("run", "--rm", image, "ip", "route").stdout.startswith("default via ")


def test_its_socket_is_closed_to_others(fresh_daemon):
    assert stat.S_IMODE(fresh_daemon.socket_path.stat().st_mode) == 0o660


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly_and_containers_run_on(fresh_daemon, image, number):
    name = fresh_daemon.docker("run", "-d", image, "sleep", "1000").stdout.strip()
    pid = int(fresh_daemon.docker("inspect", "-f", "{{.State.Pid}}", name).stdout)
    assert fresh_daemon.stop(number) == 0
    assert not fresh_daemon.socket_path.exists()
    assert os.path.exists(f"/proc/{pid}")
    fresh_daemon.start()
    assert fresh_daemon.docker("ps", "-q", "--no-trunc").stdout.split() == [name]


def test_a_second_daemon_on_the_same_data_root_is_refused(daemon):
    second = Daemon()
    try:
        with pytest.raises(AssertionError, match="in use by another daemon"):
            second.start("--data-root", str(daemon.config.data_root))
    finally:
        shutil.rmtree(second.directory)


def test_monitors_that_run_a_copy_of_conmon_outlive_it(tmp_path: Path, image: str) -> None:
    """Former versions had a copy in the data root."""
    copy = shutil.copy(shutil.which("conmon") or "", tmp_path)
    with Daemon(environment={"PATH": f"{tmp_path}:{os.environ['PATH']}"}) as daemon:
        daemon.docker("run", "-d", "--name", "box", image, "sleep", "1000")
        daemon.stop()
        former = daemon.config.data_root / "monitor"
        former.mkdir()
        os.rename(copy, former / "conmon")
        daemon.start()
        assert not former.exists()
        assert daemon.docker("exec", "box", "echo", "hi").stdout == "hi\n"
        daemon.docker("kill", "box")
        assert daemon.docker("wait", "box").stdout == "137\n"


@pytest.fixture
def no_programs_in_run() -> Iterator[Daemon]:
    """A daemon whose run directory is as /run is on Debian."""
    root = Path(tempfile.mkdtemp(prefix="hk-", dir="/tmp"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "nosuid,nodev,noexec", "run", root], check=True)
    try:
        with Daemon(exec_root=root / "husk") as daemon:
            yield daemon
    finally:
        subprocess.run(["umount", root], check=True)
        root.rmdir()


def test_where_programs_in_run_may_not_be_run(no_programs_in_run: Daemon) -> None:
    daemon = no_programs_in_run
    daemon.docker("run", "-d", "--name", "kept", "--init", "busybox", "sleep", "1000")
    assert daemon.docker("exec", "kept", "echo", "hi").stdout == "hi\n"
    daemon.docker("rm", "-f", "kept")
    daemon.check_no_litter()


def test_two_daemons_run_side_by_side(daemon, image):
    with Daemon() as other:
        daemon.docker("run", "-d", "--name", "same", image, "sleep", "1000")
        other.docker("run", "-d", "--name", "same", image, "sleep", "1000")
        assert daemon.docker("ps", "-q").stdout != other.docker("ps", "-q").stdout
    assert daemon.docker("ps", "--format", "{{.Names}}").stdout == "same\n"
    daemon.docker("run", "--rm", image, "ping", "-c1", "-W20", daemon.config.bip.split("/")[0])


def test_sighup_reloads_what_can_be_reloaded(tmp_path):
    settings = tmp_path / "daemon.json"
    settings.write_text(json.dumps({"labels": ["stage=one"]}))
    with Daemon("--config-file", str(settings)) as daemon:

        def labels() -> list[str]:
            return daemon.http("GET", "/info").json()["Labels"]

        assert labels() == ["stage=one"]
        settings.write_text(json.dumps({"labels": ["stage=two"], "group": "root"}))
        daemon.reload()
        wait_until(lambda: labels() == ["stage=two"], "the reload")
        assert "need a restart of the daemon: group" in daemon.log()
        settings.write_text("{")
        daemon.reload()
        wait_until(lambda: "the configuration stays as it was" in daemon.log(), "the refusal")
        assert labels() == ["stage=two"]


def test_systemd_is_told_when_it_is_ready(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(10)
        with Daemon(environment={"NOTIFY_SOCKET": str(tmp_path / "notify")}):
            assert manager.recv(100) == b"READY=1"
        assert manager.recv(100) == b"STOPPING=1"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--bip", "nonsense"), "husk: invalid bip 'nonsense'"),
        (("--log-level", "loud"), "husk: invalid log-level 'loud': choose one of"),
        (("--config-file", "/nonexistent.json"), "husk: unable to configure the daemon with file /nonexistent.json"),
    ],
)
def test_a_mistake_in_the_settings_is_one_line(arguments, message):
    program = Path(__file__).parents[3] / ".venv/bin/husk"
    done = subprocess.run([program, "serve", *arguments], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith(message) and done.stderr.count("\n") == 1


def test_the_environment_may_shut_out_old_clients():
    with Daemon(environment={"DOCKER_MIN_API_VERSION": "1.44"}) as daemon:
        told = daemon.http("GET", "/version").json()
        assert told["MinAPIVersion"] == told["Components"][0]["Details"]["MinAPIVersion"] == "1.44"
        assert daemon.http("GET", "/v1.44/info").status == 200
        old = daemon.http("GET", "/v1.43/info")
        assert (old.status, old.json()["message"]) == (
            400,
            "client version 1.43 is too old. Minimum supported API version is 1.44, "
            "please upgrade your client to a newer version",
        )


def test_a_version_that_no_client_speaks_is_no_minimum():
    command = [sys.executable, "-m", "husk", "serve", "--validate", "--config-file", "/dev/null"]
    done = subprocess.run(
        command, env={**os.environ, "DOCKER_MIN_API_VERSION": "v1.44"}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert 'invalid DOCKER_MIN_API_VERSION: API version must be provided without "v" prefix' in done.stderr
