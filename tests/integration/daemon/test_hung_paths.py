"""A file system of the host that never answers: who names it is told so, and nobody else notices."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from husk.kernel.mount import mount, unmount
from tests.support.client import Answer
from tests.support.daemon import Daemon


@pytest.fixture
def hung(tmp_path: Path) -> Iterator[Path]:
    """A FUSE mount whose program does not answer."""
    if not os.path.exists("/dev/fuse"):
        pytest.skip("needs /dev/fuse")
    place = tmp_path / "hung"
    place.mkdir()
    program = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    try:
        options = f"fd={program},rootmode=40000,user_id=0,group_id=0,allow_other"
        mount("hung", str(place), "fuse", data=options)
        yield place
    finally:
        os.close(program)  # every call to it fails now
        unmount(str(place), detach=True)


def bound(daemon: Daemon, path: Path) -> Answer:
    return started(daemon, {"Binds": [f"{path}:/data"]})


def started(daemon: Daemon, host: dict[str, object]) -> Answer:
    """The answer to its start, or to its making where that is refused."""
    answer = daemon.http("POST", "/containers/create", {"Image": "busybox", "Cmd": ["true"], "HostConfig": host})
    return daemon.http("POST", f"/containers/{answer.json()['Id']}/start") if answer.status == 201 else answer


def test_requests_that_touch_a_hung_path_stop_nothing_else_and_the_daemon_ends(fresh_daemon: Daemon, hung: Path):
    daemon = fresh_daemon
    daemon.docker("run", "-d", "--name", "other", "busybox", "sh", "-c", "echo hello; sleep 1000")
    link = hung.with_name("link")
    link.symlink_to(hung)
    hosts: list[dict[str, object]] = [
        {"Devices": [{"PathOnHost": f"{hung}/device", "PathInContainer": "/dev/x", "CgroupPermissions": "rwm"}]},
        {"BlkioDeviceReadBps": [{"Path": f"{hung}/disk", "Rate": 1 << 20}]},
        {"LogConfig": {"Type": "syslog", "Config": {"syslog-address": f"unix://{hung}/log"}}},
        {"LogConfig": {"Type": "fluentd", "Config": {"fluentd-address": f"unix://{hung}/fluentd"}}},
    ]
    with ThreadPoolExecutor(70) as clients:
        waiting = [clients.submit(bound, daemon, hung / str(number % 20)) for number in range(40)]
        waiting += [clients.submit(bound, daemon, link / str(number)) for number in range(10)]
        waiting += [clients.submit(started, daemon, host) for host in hosts for _ in range(5)]
        assert daemon.docker("exec", "other", "echo", "x").stdout == "x\n"
        assert daemon.docker("logs", "other").stdout == "hello\n"
        assert daemon.docker("run", "--rm", "-v", "/etc/hostname:/x:ro", "busybox", "echo", "run").stdout == "run\n"
        daemon.docker("cp", "other:/etc/passwd", "-")
        assert not any(future.done() and future.result().status != 503 for future in waiting)
        daemon.docker("volume", "create", "-o", "type=none", "-o", "o=bind", "-o", f"device={hung}", "slow")
        refused = daemon.docker("run", "--rm", "-v", "slow:/data", "busybox", "true", check=False)
        assert "does not answer" in refused.stderr
        for future in waiting:
            assert future.result().status == 503
            assert "does not answer" in future.result().message
    assert daemon.stop() == 0
