"""A frontend that is an image, and whose work a test does: its program only connects its streams with the test.

    async with FrontendImage(builds, daemon, work) as image:
        done = await image.build("# syntax=frontend\n...")

`work` gets what the frontend can ask, for each run.
"""

import asyncio
import subprocess
from collections.abc import Awaitable, Callable
from typing import TypeVar

from husk.rpc.grpc.connection import GrpcConnection
from husk.rpc.protobuf import Message
from tests.support.build_client import Below
from tests.support.building import Builds
from tests.support.daemon import Daemon

SERVICE = "/moby.buildkit.v1.frontend.LLBBridge"
Answer = TypeVar("Answer", bound=Message)


class Calls:
    def __init__(self, connection: GrpcConnection, environment: list[str]) -> None:
        self.connection = connection
        self.environment = dict(line.split("=", 1) for line in environment if "=" in line)

    async def call(self, method: str, request: Message, kind: type[Answer]) -> Answer:
        return kind.decode(await self.connection.unary(f"{SERVICE}/{method}", request.encode(), timeout=30))

    @property
    def options(self) -> dict[str, str]:
        given = (value for name, value in self.environment.items() if name.startswith("BUILDKIT_FRONTEND_OPT_"))
        return dict(one.split("=", 1) for one in given)


Work = Callable[[Calls], Awaitable[None]]


class FrontendImage:
    def __init__(self, builds: Builds, daemon: Daemon, work: Work) -> None:
        self._builds = builds
        self._gateway = daemon.config.bip.partition("/")[0]
        self._work = work
        self._environment: list[str] = []
        self.failure: BaseException | None = None

    async def __aenter__(self) -> "FrontendImage":
        self._server = await asyncio.start_server(self._serve, "0.0.0.0", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        there = f"busybox nc {self._gateway} {self.port}"
        await self.make(f"(echo ENVIRONMENT; busybox env) | {there}; exec {there}")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def make(self, script: str, more: str = "") -> None:
        """The image: a shell's script."""
        entry = script.replace('"', '\\"')
        text = f'FROM busybox\n{more}ENTRYPOINT ["/bin/sh", "-c", "{entry}"]\n'
        await asyncio.to_thread(self._builds.run, text, "-t", "frontend")

    async def build(self, dockerfile: str, *options: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        done = await asyncio.to_thread(self._builds.run, dockerfile, *options, check=False)
        if self.failure is not None:
            raise self.failure
        assert not check or done.returncode == 0, done.stderr
        return done

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._environment:
            self._environment = (await reader.read()).decode().splitlines()
            writer.close()
            return
        environment, self._environment = self._environment, []
        try:
            async with GrpcConnection(Below(reader, writer), client=True) as connection:
                await self._work(Calls(connection, environment))
        except Exception as error:
            self.failure = error
        finally:
            writer.close()
