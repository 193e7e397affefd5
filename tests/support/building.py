"""Builds with the real docker client: a context on the disk, and what came out."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.build_client import PLUGIN
from tests.support.daemon import Daemon
from tests.support.images import forget_images


class Context:
    """A directory with a Dockerfile."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, files: Mapping[str, str | bytes]) -> "Context":
        for name, content in files.items():
            file = self.path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.encode() if isinstance(content, str) else content)
        return self


needs_buildx = pytest.mark.skipif(not PLUGIN.exists(), reason="docker buildx is not here: scripts/setup --test")


@contextmanager
def buildkit_builds(
    daemon: Daemon, directory: Path, files: Mapping[str, str | bytes] | None = None
) -> Iterator["Builds"]:
    """Builds by BuildKit's door, of a context with these files; afterwards neither images nor a cache are left."""
    context = directory / "context"
    context.mkdir()
    yield Builds(daemon, Context(context).write(files or {}), buildkit=True)
    forget_images(daemon)
    assert daemon.http("POST", "/build/prune?all=1").status == 200


class Builds:
    """`docker build` against one daemon, by one of the two doors."""

    def __init__(self, daemon: Daemon, context: Context, *, buildkit: bool) -> None:
        self._daemon = daemon
        self.context = context
        self._buildkit = buildkit
        self.config_directory = context.path.parent / f"{context.path.name}-cli"
        plugins = self.config_directory / "cli-plugins"
        plugins.mkdir(parents=True, exist_ok=True)
        if buildkit:
            (plugins / "docker-buildx").symlink_to(PLUGIN)

    def run(
        self, dockerfile: str, *options: str, files: Mapping[str, str | bytes] | None = None, check: bool = True
    ) -> "subprocess.CompletedProcess[str]":
        self.context.write({"Dockerfile": dockerfile, **(files or {})})
        plain = ["--progress=plain"] if self._buildkit else []
        return self.docker("build", *plain, "-t", "built", *options, str(self.context.path), check=check)

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "DOCKER_HOST": self._daemon.host,
            "DOCKER_BUILDKIT": str(int(self._buildkit)),
            "DOCKER_CONFIG": str(self.config_directory),
        }

    def docker(self, *arguments: str, check: bool = True, **more: Any) -> "subprocess.CompletedProcess[str]":
        """Any command of the docker client's, with its plugins."""
        environment = {**self.environment, **more.pop("env", {})}
        done = subprocess.run(
            ["docker", *arguments], env=environment, capture_output=True, text=True, timeout=120, **more
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def config(self, image: str = "built") -> dict[str, Any]:
        config: dict[str, Any] = self.inspect(image)["Config"]
        return config

    def inspect(self, image: str = "built") -> dict[str, Any]:
        answer = self._daemon.http("GET", f"/images/{image}/json")
        assert answer.status == 200, answer.body
        shown: dict[str, Any] = answer.json()
        return shown

    def sh(self, script: str, image: str = "built") -> str:
        """Return the output of a shell in a container of the image."""
        return self._daemon.docker("run", "--rm", "--entrypoint", "sh", image, "-c", script).stdout
