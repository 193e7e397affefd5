"""Compose v1, as Debian 12 packages it (`docker-compose`, Python): a project of the old file format runs on Husk."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support.compose_services import get
from tests.support.daemon import COMMAND_TIMEOUT, CommandFailed, Daemon
from tests.support.free_ports import free_ports

PROJECT = {
    "version": "2.4",
    "services": {
        "db": {
            "image": "busybox",
            "init": True,
            "command": 'sh -c "touch /data/up; exec sleep 600"',
            "volumes": ["data:/data"],
            "networks": {"back": {"aliases": ["database"]}},
            "healthcheck": {"test": ["CMD", "test", "-e", "/data/up"], "interval": "1s"},
        },
        "web": {
            "image": "busybox",
            "init": True,
            "command": 'sh -c "echo hello; echo hello >/tmp/index.html; exec httpd -f -p 80 -h /tmp"',
            "depends_on": {"db": {"condition": "service_healthy"}},
            "networks": ["front", "back"],
            "ports": ["$PORT:80"],
        },
    },
    "networks": {"front": {}, "back": {"internal": True}},
    "volumes": {"data": {}},
}


class Compose:
    def __init__(self, daemon: Daemon, directory: Path, port: int) -> None:
        self.daemon = daemon
        self.directory = directory
        self.port = port
        (directory / "docker-compose.yml").write_text(yaml.safe_dump(PROJECT))

    def __call__(self, *arguments: str) -> str:
        done = subprocess.run(
            ["docker-compose", *arguments],
            cwd=self.directory,
            env={**self.daemon.environment, "PORT": str(self.port)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT,
        )
        if done.returncode:
            raise CommandFailed(f"docker-compose {' '.join(arguments)}: {done.stdout}\n{done.stderr}")
        return done.stdout


@pytest.fixture
def compose(daemon: Daemon, tmp_path: Path) -> Iterator[Compose]:
    program = shutil.which("docker-compose")
    said = subprocess.run([program, "version", "--short"], capture_output=True, text=True).stdout if program else ""
    if not said.startswith("1."):
        pytest.skip("needs Compose v1 (Debian 12: apt install docker-compose)")
    directory = tmp_path / "shop"
    directory.mkdir()
    compose = Compose(daemon, directory, free_ports(1))
    yield compose
    compose("down", "-v", "-t", "1")


def test_a_project_from_up_to_down(compose: Compose) -> None:
    daemon = compose.daemon
    compose("up", "-d")
    assert "Up (healthy)" in compose("ps")
    assert get(compose.port) == "hello"
    assert "1 packets received" in compose("exec", "-T", "web", "ping", "-c1", "database")
    assert "hello" in compose("logs", "--no-color", "web")
    compose("up", "-d", "--scale", "db=2")
    assert "shop_db_2" in compose("ps")
    assert compose("run", "--rm", "web", "echo", "ran").strip() == "ran"
    assert "sleep 600" in compose("top", "db")
    compose("restart", "-t", "1", "web")
    assert get(compose.port) == "hello"
    compose("stop", "-t", "1")
    compose("start")
    assert get(compose.port) == "hello"
    compose("down", "-v", "-t", "1")
    assert daemon.docker("ps", "-aq").stdout == ""
    assert "shop_" not in daemon.docker("network", "ls").stdout + daemon.docker("volume", "ls").stdout
