"""`docker container prune`: what does not run goes, as far as the filters say."""

import json
import time
from urllib.parse import quote

import pytest

from tests.support.daemon import Answer, Daemon


def prune(daemon: Daemon, **filters: list[str]) -> Answer:
    return daemon.http("POST", f"/containers/prune?filters={quote(json.dumps(filters))}")


def names(daemon: Daemon) -> list[str]:
    return sorted(daemon.docker("ps", "-a", "--format", "{{.Names}}").stdout.split())


def test_what_runs_stays(daemon: Daemon):
    daemon.docker("run", "-d", "--name", "running", "busybox", "sleep", "1000")
    daemon.docker("run", "-d", "--name", "paused", "busybox", "sleep", "1000")
    daemon.docker("pause", "paused")
    daemon.docker("create", "--name", "created", "busybox")
    daemon.docker("run", "--name", "exited", "busybox", "sh", "-c", "echo 12345 >/x")
    answer = prune(daemon).json()
    assert len(answer["ContainersDeleted"]) == 2
    assert answer["SpaceReclaimed"] == 6
    assert names(daemon) == ["paused", "running"]
    assert prune(daemon).json() == {"ContainersDeleted": None, "SpaceReclaimed": 0}


def test_the_docker_command(daemon: Daemon):
    daemon.docker("run", "--name", "gone", "busybox", "sh", "-c", "echo 12345 >/x")
    done = daemon.docker("container", "prune", "-f")
    assert "Total reclaimed space: 6B" in done.stdout


def test_labels(daemon: Daemon):
    daemon.docker("create", "--name", "ab", "-l", "keep=no", "busybox")
    daemon.docker("create", "--name", "cd", "-l", "keep=yes", "busybox")
    daemon.docker("create", "--name", "ef", "busybox")
    prune(daemon, label=["keep=no"])
    assert names(daemon) == ["cd", "ef"]
    prune(daemon, **{"label!": ["keep"]})
    assert names(daemon) == ["cd"]


def test_until(daemon: Daemon):
    daemon.docker("create", "--name", "old", "busybox")
    between = str(time.time())
    daemon.docker("create", "--name", "new", "busybox")
    prune(daemon, until=["24h"])
    assert names(daemon) == ["new", "old"]
    prune(daemon, until=[between])
    assert names(daemon) == ["new"]


@pytest.mark.parametrize("filters", [{"until": ["x"]}, {"until": ["1h", "2h"]}, {"bogus": ["x"]}])
def test_refused(daemon: Daemon, filters: dict[str, list[str]]):
    daemon.docker("create", "--name", "box", "busybox")
    assert prune(daemon, **filters).status == 400
    assert names(daemon) == ["box"]


def test_the_event(daemon: Daemon):
    since = str(time.time())
    daemon.docker("create", "--name", "box", "busybox")
    prune(daemon)
    template = "{{.Action}} {{.Actor.Attributes.reclaimed}}"
    done = daemon.docker("events", "--since", since, "--until", str(time.time()), "--format", template)
    assert done.stdout.splitlines()[-1] == "prune 0"
