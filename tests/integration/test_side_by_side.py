"""Several engines on one host: two of ours with different roots, and ours beside a dockerd."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.waiting import until


@pytest.fixture(scope="module")
def other() -> Iterator[Daemon]:
    with Daemon() as daemon:
        yield daemon


@pytest.fixture
def dockerd() -> Iterator[dict[str, str]]:
    """A real dockerd with everything of its own; the environment of a client that talks to it."""
    program = shutil.which("dockerd")
    if program is None or shutil.which("containerd") is None:
        pytest.skip("dockerd is not installed")
    directory = Path(tempfile.mkdtemp(prefix="dd-", dir="/tmp"))
    host = f"unix://{directory}/s"
    command = [program, "-H", host, "--data-root", f"{directory}/data", "--exec-root", f"{directory}/run"]
    command += ["--pidfile", f"{directory}/pid", "--iptables=false", "--ip6tables=false", "--bridge=none"]
    command += ["--storage-driver", "vfs", "--config-file", f"{directory}/daemon.json"]
    (directory / "daemon.json").write_text("{}")
    environment = {**os.environ, "DOCKER_HOST": host, "DOCKER_CONFIG": f"{directory}/docker"}
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/")
    containerd = ""
    try:

        def answers() -> bool:
            if process.poll() is not None:
                pytest.skip("dockerd does not start here: " + (directory / "log").read_text()[-300:])
            return subprocess.run(["docker", "info"], env=environment, capture_output=True).returncode == 0

        until(answers, "dockerd answers", 40)
        containerd = next(directory.glob("run/containerd/containerd.pid")).read_text().strip()
        yield environment
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if containerd and os.path.exists(f"/proc/{containerd}"):
            os.kill(int(containerd), signal.SIGKILL)
        mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
        for target in sorted((m for m in mounts if m.startswith(f"{directory}/")), reverse=True):
            subprocess.run(["umount", "-l", target], capture_output=True)
        shutil.rmtree(directory, ignore_errors=True)


def test_two_daemons_know_nothing_of_each_other(daemon: Daemon, other: Daemon) -> None:
    for one in (daemon, other):
        one.docker("run", "-d", "--name", "same-name", "busybox", "sleep", "600")
    shown = [json.loads(one.docker("inspect", "same-name").stdout)[0] for one in (daemon, other)]
    assert shown[0]["Id"] != shown[1]["Id"]
    networks = [container["NetworkSettings"]["Networks"]["bridge"]["Gateway"] for container in shown]
    assert networks[0] != networks[1]
    other.docker("rm", "-f", "same-name")
    assert daemon.docker("ps", "--format", "{{.Names}}").stdout == "same-name\n"
    daemon.docker("tag", "busybox", "mine:1")
    assert other.http("GET", "/images/mine:1/json").status == 404
    daemon.docker("rmi", "mine:1")
    assert json.loads(daemon.docker("inspect", "same-name").stdout)[0]["State"]["Running"]


def test_the_end_of_one_daemon_leaves_the_other_alone(daemon: Daemon, other: Daemon) -> None:
    for one in (daemon, other):
        one.docker("run", "-d", "--name", "box", "busybox", "sleep", "600")
    pid = json.loads(daemon.docker("inspect", "box").stdout)[0]["State"]["Pid"]
    other.kill9()
    other.start()
    other.docker("rm", "-f", "box")
    other.restart()
    assert json.loads(daemon.docker("inspect", "box").stdout)[0]["State"]["Pid"] == pid
    gateway = json.loads(daemon.docker("inspect", "box").stdout)[0]["NetworkSettings"]["Networks"]["bridge"]["Gateway"]
    assert daemon.docker("run", "--rm", "busybox", "ping", "-c", "1", "-W", "5", gateway).returncode == 0


def test_one_data_root_has_one_daemon(daemon: Daemon) -> None:
    twin = Daemon()
    twin.config = daemon.config
    try:
        with pytest.raises(AssertionError, match="ended at its start"):
            twin.start()
    finally:
        twin.process = None
        shutil.rmtree(twin.directory, ignore_errors=True)
    assert daemon.docker("run", "--rm", "busybox", "echo", "hi").stdout == "hi\n"


def test_beside_a_dockerd(daemon: Daemon, dockerd: dict[str, str]) -> None:
    def docker(*arguments: str) -> str:
        done = subprocess.run(["docker", *arguments], env=dockerd, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    daemon.docker("run", "-d", "--name", "ours", "busybox", "sleep", "600")
    assert docker("ps", "-aq") == "" and docker("images", "-q") == ""
    assert json.loads(docker("info", "--format", "{{json .}}"))["ServerVersion"]
    assert daemon.docker("run", "--rm", "busybox", "echo", "hi").stdout == "hi\n"
    assert json.loads(daemon.docker("inspect", "ours").stdout)[0]["State"]["Running"]
