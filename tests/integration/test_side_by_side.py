"""Several engines on one host: two of ours with different roots, and ours beside a dockerd."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from husk.composition import Engine
from husk.errors import Conflict
from tests.support.daemon import Daemon
from tests.support.dockerd import Dockerd


@pytest.fixture(scope="module")
def other() -> Iterator[Daemon]:
    with Daemon() as daemon:
        yield daemon


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


@pytest.mark.parametrize("shared", ["data_root", "exec_root"])
async def test_a_library_s_engine_touches_nothing_of_a_running_daemon(
    daemon: Daemon, tmp_path: Path, shared: str
) -> None:
    """It used to remove the daemon's spare sandboxes, so that the next start failed."""
    assert daemon.process is not None
    own = {"data_root": tmp_path / "data", "exec_root": tmp_path / "run"}
    config = replace(daemon.config, **(own | {shared: getattr(daemon.config, shared)}))
    with pytest.raises(Conflict, match=rf"in use by another daemon \(pid {daemon.process.pid}\)"):
        async with Engine.open(config):
            pass
    for _ in range(6):  # more than there are spare sandboxes
        assert daemon.docker("run", "--rm", "busybox", "echo", "hi").stdout == "hi\n"


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


def test_beside_a_dockerd(daemon: Daemon, dockerd: Dockerd) -> None:
    daemon.docker("run", "-d", "--name", "ours", "busybox", "sleep", "600")
    assert dockerd.docker("ps", "-aq").stdout == "" and dockerd.docker("images", "-q").stdout == ""
    assert json.loads(dockerd.docker("info", "--format", "{{json .}}").stdout)["ServerVersion"]
    assert daemon.docker("run", "--rm", "busybox", "echo", "hi").stdout == "hi\n"
    assert json.loads(daemon.docker("inspect", "ours").stdout)[0]["State"]["Running"]
