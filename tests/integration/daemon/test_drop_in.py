"""In dockerd's place: called `dockerd`, the daemon has dockerd's bridge, and clients hear what they hear of dockerd."""

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.hosts import Host, Hosts
from tests.support.waiting import until

REACH = ("busybox", "wget", "-qO-", "http://127.0.0.1:8080/hostname")
PROGRAM = Path(__file__).parents[3] / ".venv/bin/husk"


@pytest.fixture
def host() -> Iterator[Host]:
    """A host that nobody else has interfaces on."""
    if os.geteuid() != 0:
        pytest.skip("needs root: it runs real containers")
    with Hosts(1) as hosts:
        yield hosts[0]


@pytest.fixture
def dockerd() -> Iterator[tuple[str, ...]]:
    """A way to run `husk serve ...`, which follows it, as `dockerd ...`."""
    with tempfile.TemporaryDirectory(prefix="hd-", dir="/tmp") as directory:
        place = Path(directory)
        (place / "dockerd").symlink_to(PROGRAM)
        wrapper = place / "as-dockerd"
        wrapper.write_text(f'#!/bin/sh\nshift 2\nexec {place}/dockerd --pidfile {place}/pid$$ "$@"\n')
        wrapper.chmod(0o755)
        yield (str(wrapper),)


def bridge_of(daemon: Daemon) -> str:
    (network,) = json.loads(daemon.docker("network", "inspect", "bridge").stdout)
    return str(network["Options"]["com.docker.network.bridge.name"])


def test_the_default_bridge_is_docker0_where_nothing_else_is(host: Host, dockerd: tuple[str, ...]) -> None:
    first = host.daemon(program=PROGRAM, wrapper=dockerd)
    assert bridge_of(first) == "docker0"
    first.docker("run", "-d", "--name", "web", "-p", "127.0.0.1:8080:80", "busybox", "httpd", "-f", "-h", "/etc")
    # The program may take a while to listen.
    until(lambda: host.run(*REACH, check=False), "the program answers")
    second = host.daemon(program=PROGRAM, wrapper=dockerd)
    assert bridge_of(second) == second.config.bridge_name != "docker0", "that one is the first daemon's"
    second.close()
    first.kill9()
    first.start()
    assert bridge_of(first) == "docker0" and host.run(*REACH), "its own bridge is known again"


def test_a_bridge_of_somebody_else_stays_as_it_is(host: Host, dockerd: tuple[str, ...]) -> None:
    host.run("ip", "link", "add", "docker0", "type", "bridge")
    before = host.run("ip", "-o", "link", "show", "docker0")
    daemon = host.daemon(program=PROGRAM, wrapper=dockerd)
    assert bridge_of(daemon) == daemon.config.bridge_name
    assert host.run("ip", "-o", "link", "show", "docker0") == before
    host.run("ip", "link", "delete", "docker0")
    daemon.restart()
    assert bridge_of(daemon) == "docker0"


def test_containers_come_along_when_the_bridge_gets_the_name(host: Host, dockerd: tuple[str, ...]) -> None:
    host.run("ip", "link", "add", "docker0", "type", "bridge")
    daemon = host.daemon(program=PROGRAM, wrapper=dockerd)
    daemon.docker("run", "-d", "--name", "web", "-p", "127.0.0.1:8080:80", "busybox", "httpd", "-f", "-h", "/etc")
    until(lambda: host.run(*REACH, check=False), "the program answers")
    daemon.stop()
    host.run("ip", "link", "delete", "docker0")
    daemon.start()
    assert bridge_of(daemon) == "docker0"
    assert host.run(*REACH)
    assert daemon.docker("exec", "web", "ip", "route").stdout.startswith("default")


def test_what_dockerd_says_of_its_builder_and_of_experiments(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: it runs a daemon")
    file = tmp_path / "daemon.json"
    file.write_text('{"experimental": true, "features": {"buildkit": false}}')
    with Daemon(f"--config-file={file}") as daemon:

        def told() -> tuple[str, str]:
            headers = daemon.http("GET", "/_ping").headers
            return headers["Builder-Version"], headers["Docker-Experimental"]

        assert told() == ("1", "true")
        assert daemon.http("GET", "/info").json()["ExperimentalBuild"] is True
        version = daemon.http("GET", "/version").json()
        assert (version["Experimental"], version["Components"][0]["Details"]["Experimental"]) == (True, "true")
        file.write_text('{"experimental": true}')
        daemon.reload()
        until(lambda: told() == ("2", "true"), "the reloaded features")
