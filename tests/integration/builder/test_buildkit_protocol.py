"""The stock buildx against our side of BuildKit's protocol, with doubles of what does the work behind it."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from husk.api.http import h2c
from husk.api.http.request import Request
from husk.api.http.response import Answer, Response, Unanswered, fields
from husk.api.http.server import Server
from tests.support.build_client import PLUGIN
from tests.support.building import needs_buildx
from tests.unit.builder.protocol.fake_builder import FakeBuilder, serving_server

pytestmark = needs_buildx

VERSION = {"ApiVersion": "1.48", "MinAPIVersion": "1.24", "Version": "28.0.0", "Os": "linux", "Arch": "amd64"}


class Daemon:
    """Just enough of a daemon for buildx: a few words of HTTP/1.1, and the protocol."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.socket = directory / "s"
        self.builder = FakeBuilder()
        self._buildkit = serving_server(self.builder)
        self.server = Server(self._answer, http2=self._http2)

    async def _answer(self, request: Request) -> Answer:
        if request.path.endswith("/grpc"):
            await self._buildkit.serve(h2c.upgrade(request))
        elif request.path.endswith("/session"):
            await self._buildkit.session(h2c.upgrade(request), request.all_headers())
        else:
            headers = {"Api-Version": "1.48", "Ostype": "linux", "Content-Type": "application/json"}
            return Response(200, msgspec.json.encode(VERSION), fields(headers))
        return Unanswered()

    async def _http2(self, request: Request) -> Answer:
        await self._buildkit.serve(h2c.begin(request))
        return Unanswered()

    async def buildx(self, *arguments: str, code: int = 0) -> str:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.directory),
            "DOCKER_CONFIG": str(self.directory / "docker"),
            "DOCKER_HOST": f"unix://{self.socket}",
        }
        process = await asyncio.create_subprocess_exec(
            "docker",
            "buildx",
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environment,
        )
        try:
            async with asyncio.timeout(60):
                said, _ = await process.communicate()
        except BaseException:
            process.kill()
            raise
        assert process.returncode == code, said.decode()
        return said.decode()


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[Daemon]:
    made = Daemon(tmp_path)
    plugins = tmp_path / "docker/cli-plugins"
    plugins.mkdir(parents=True)
    (plugins / "docker-buildx").symlink_to(PLUGIN)
    (tmp_path / "context").mkdir()
    (tmp_path / "context/Dockerfile").write_text("FROM busybox\nCMD x\n")
    listening = await asyncio.get_running_loop().create_unix_server(made.server, str(made.socket))
    yield made
    listening.close()
    await made.server.close(1)


async def test_a_build_over_the_upgraded_connections(daemon: Daemon) -> None:
    said = await daemon.buildx("build", "--progress=plain", "-t", "a:b", str(daemon.directory / "context"))
    assert "[1/1] FROM" in said
    asked, build = daemon.builder.builds
    assert asked.exports == [], "not the question of what we can do"
    assert build.question is None
    assert [(one.kind, one.attributes["name"]) for one in build.exports] == [("moby", "a:b")]
    assert daemon.builder.bench.worker.ran, "the result was not made"


async def test_a_failing_build_says_why(daemon: Daemon) -> None:
    context = str(daemon.directory / "context")
    said = await daemon.buildx("build", "--target", "nowhere", context, code=1)
    # The call and the frontend in the client both end with it, and buildx tells of whichever it notices first.
    told = r'ERROR: failed to build: failed to (solve|run Build function): target stage "nowhere" could not be found'
    assert re.search(told, said)


async def test_a_builder_by_its_socket_alone(daemon: Daemon) -> None:
    """HTTP/2 from the first byte, and the session within a call."""
    await daemon.buildx("create", "--name", "remote", "--driver", "remote", f"unix://{daemon.socket}")
    assert "linux/amd64" in await daemon.buildx("inspect", "remote")
    await daemon.buildx("build", "--builder", "remote", "-o", "type=image", str(daemon.directory / "context"))
    assert [one.kind for one in daemon.builder.builds[-1].exports] == ["image"]


async def test_the_cache_is_shown_and_pruned(daemon: Daemon) -> None:
    assert "r1" in await daemon.buildx("du")
    assert "r1" in await daemon.buildx("prune", "-f", "--all", "--filter", "until=24h")
    assert daemon.builder.questions[-1] == (["86400s"], True, 0)


async def test_builds_that_were_done_are_listed(daemon: Daemon) -> None:
    await daemon.buildx("build", "-t", "a:b", str(daemon.directory / "context"))
    assert "Completed" in await daemon.buildx("history", "ls")
    assert "[1/1] FROM" in await daemon.buildx("history", "logs")
    await daemon.buildx("history", "rm", "--all")
    assert "Completed" not in await daemon.buildx("history", "ls")
