"""Compose projects for tests, run by the real `docker compose` plugin that `scripts/setup --test` put into .venv.

project.write({"services": {"web": {"image": "busybox", "command": "sleep 600"}}})
project("up", "-d", "--wait")
assert project.services()["web-1"]["State"] == "running"
"""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.daemon import COMMAND_TIMEOUT, CommandFailed, Daemon

_PREDEFINED = ("bridge", "host", "none")
PLUGIN = Path(__file__).resolve().parents[2] / ".venv/docker/cli-plugins/docker-compose"


def require_compose() -> None:
    if not os.access(PLUGIN, os.X_OK):
        pytest.skip(f"needs docker compose: {PLUGIN} is not there, scripts/setup --test says why")


class Project:
    """A directory with a compose file, and the command that acts on it. Its name is that of the directory."""

    def __init__(self, daemon: Daemon, directory: Path) -> None:
        self.daemon = daemon
        self.directory = directory
        self.name = directory.name
        self.variables: dict[str, str] = {}
        plugins = daemon.directory / "docker/cli-plugins"
        plugins.mkdir(parents=True, exist_ok=True)
        if not (plugins / PLUGIN.name).exists():
            (plugins / PLUGIN.name).symlink_to(PLUGIN)

    def write(self, content: Mapping[str, Any]) -> None:
        (self.directory / "compose.yaml").write_text(yaml.safe_dump(dict(content), sort_keys=False))

    @property
    def environment(self) -> dict[str, str]:
        # The terminal of whoever runs the tests, and the variables of its projects, are not part of them.
        inherited = {name: value for name, value in self.daemon.environment.items() if not name.startswith("COMPOSE_")}
        return {**inherited, **self.variables}

    def __call__(
        self, *arguments: str, check: bool = True, timeout: float = COMMAND_TIMEOUT
    ) -> subprocess.CompletedProcess[str]:
        """Run one command of compose to its end."""
        try:
            done = subprocess.run(
                ["docker", "compose", *arguments],
                cwd=self.directory,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=timeout,
            )
        except subprocess.TimeoutExpired as error:
            said = f"{error.stdout!r}\n{error.stderr!r}"
            raise CommandFailed(f"compose {' '.join(arguments)} did not end within {timeout:g} s\n{said}") from None
        if check and done.returncode != 0:
            said = f"stdout: {done.stdout}\nstderr: {done.stderr}"
            raise CommandFailed(f"compose {' '.join(arguments)} ended with {done.returncode}\n{said}")
        return done

    @contextlib.contextmanager
    def process(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """A command that goes on. Command and plugin are a process group of their own; what is left of it at the end
        is killed. A signal is for the command: without a terminal it hands it on, and the plugin must not get two."""
        running = subprocess.Popen(
            ["docker", "compose", *arguments],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            process_group=0,
        )
        with running:
            try:
                yield running
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(running.pid, signal.SIGKILL)

    def output(self, *arguments: str) -> str:
        return self(*arguments).stdout

    def within(self, service: str, script: str) -> str:
        """Return the output of a shell script in the first container of a service."""
        return self.output("exec", "-T", service, "sh", "-c", script)

    def services(self) -> dict[str, dict[str, Any]]:
        """Return what `ps --all` tells about each container, by its name without the project's."""
        lines = self.output("ps", "--all", "--format", "json").splitlines()
        shown: list[dict[str, Any]] = [json.loads(line) for line in lines]
        return {container["Name"].removeprefix(self.name + "-"): container for container in shown}

    def ids(self) -> dict[str, str]:
        return {name: container["ID"] for name, container in self.services().items()}

    def close(self) -> None:
        """Take everything down that a test that failed may have left, then look at what a `down -v` leaves."""
        self("--profile", "*", "down", "--volumes", "--remove-orphans", "--timeout", "0", check=False)
        containers, volumes, networks = (
            self.daemon.http("GET", path).json() for path in ("/containers/json?all=1", "/volumes", "/networks")
        )
        left = [
            *(f"container {found['Names']}" for found in containers),
            *(f"volume {found['Name']}" for found in volumes["Volumes"]),
            *(f"network {found['Name']}" for found in networks if found["Name"] not in _PREDEFINED),
        ]
        assert not left, f"the project left {left}"
