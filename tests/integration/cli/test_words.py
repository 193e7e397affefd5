"""Docker's words with a real daemon: what they show is what docker's command shows, and what they do is done."""

import json
import re
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.husk import husk

_AGE = re.compile(r"(Less than a second|About a minute|\d+ (second|minute)s?)( ago)?", re.IGNORECASE)


def _same(daemon: Daemon, *line: str) -> None:
    ours, dockers = (
        [" ".join(_AGE.sub("~", each).split()) for each in done.stdout.splitlines()]
        for done in (husk(daemon, *line), daemon.docker(*line))
    )
    assert ours == dockers, line


def test_volumes_and_networks(daemon: Daemon) -> None:
    husk(daemon, "volume", "create", "--label", "team=red", "words")
    husk(daemon, "network", "create", "--subnet", "10.213.7.0/24", "--gateway", "10.213.7.9", "words")
    try:
        for line in (
            ["volume", "ls"],
            ["volume", "inspect", "words"],
            ["network", "ls"],
        ):
            _same(daemon, *line)
        assert "words" in husk(daemon, "network", "prune", "-f").stdout
        assert "words" in husk(daemon, "volume", "prune", "-af").stdout
    finally:
        daemon.docker("network", "rm", "-f", "words")
        daemon.docker("volume", "rm", "-f", "words")


def test_what_became_of_a_container(daemon: Daemon, tmp_path: Path) -> None:
    husk(daemon, "run", "-d", "--name", "words", "-p", "80", "busybox", "sh", "-c", "touch /made; sleep 1000")
    daemon.docker("exec", "words", "sh", "-c", "until [ -e /made ]; do :; done")
    for line in (["port", "words"], ["diff", "words"], ["history", "busybox"]):
        _same(daemon, *line)
    husk(daemon, "update", "--memory", "64m", "--memory-swap", "64m", "words")
    assert husk(daemon, "inspect", "-f", "{{.HostConfig.Memory}}", "words").stdout == f"{64 << 20}\n"
    husk(daemon, "commit", "-c", "CMD cat /made", "words", "words:1")
    husk(daemon, "save", "-o", str(tmp_path / "image"), "words:1")
    husk(daemon, "export", "-o", str(tmp_path / "files"), "words")
    husk(daemon, "rmi", "words:1")
    assert husk(daemon, "load", "-i", str(tmp_path / "image")).stdout == "Loaded image: words:1\n"
    husk(daemon, "import", str(tmp_path / "files"), "words:2")
    husk(daemon, "rmi", "words:1", "words:2")
    husk(daemon, "rm", "-f", "words")
    assert json.loads(husk(daemon, "version", "--json").stdout)["Server"]["Platform"]


@pytest.fixture
def swarm(daemon: Daemon) -> Daemon:
    husk(daemon, "swarm", "init", "--advertise-addr", "127.0.0.1")
    return daemon


def test_a_service(swarm: Daemon, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("value")
    try:
        husk(swarm, "secret", "create", "key", str(tmp_path / "key"))
        line = ("--name", "web", "--replicas", "2", "--secret", "key", "--label", "com.docker.stack.namespace=shop")
        husk(swarm, "service", "create", "-d", *line, "busybox", "sleep", "1000")
        husk(swarm, "service", "scale", "-d", "web=1")
        for shown in (
            ["service", "ls"],
            ["service", "ps", "web", "--format", "{{.Name}} {{.Image}} {{.DesiredState}}"],
            ["node", "ls", "--format", "{{.Hostname}} {{.Status}} {{.Availability}} {{.ManagerStatus}}"],
            ["secret", "ls"],
        ):
            _same(swarm, *shown)
        husk(swarm, "service", "update", "-d", "--env-add", "A=1", "--secret-rm", "key", "web")
        spec = json.loads(
            husk(swarm, "service", "inspect", "-f", "{{json .Spec.TaskTemplate.ContainerSpec}}", "web").stdout
        )
        assert spec["Env"] == ["A=1"] and not spec.get("Secrets")
        assert husk(swarm, "stack", "rm", "shop").stdout == "Removing service web\n"
    finally:
        husk(swarm, "swarm", "leave", "--force")
