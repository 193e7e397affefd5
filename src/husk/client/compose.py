"""Compose projects, put up and taken down by Docker's own plugin, which is given this engine's address.

The plugin is Compose: what a Compose file means is its business, and is not said a second time here.
"""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from husk.client.address import config_directory
from husk.client.calls import Calls
from husk.client.container import Container
from husk.client.logs import LogEntry
from husk.client.moments import Moment
from husk.errors import CommandFailed, HuskError, NotFound, NotImplementedYet, Unavailable

_PLUGIN = "docker-compose"
_PLACES = (
    "/usr/local/lib/docker/cli-plugins",
    "/usr/local/libexec/docker/cli-plugins",
    "/usr/lib/docker/cli-plugins",
    "/usr/libexec/docker/cli-plugins",
)
# Of what the plugin says its error shows so much.
_SHOWN = 2000
_LABEL = "com.docker.compose"


class Engine(Protocol):
    """The part of a client that a project asks."""

    def logs(
        self, *, project: str, follow: bool = False, tail: int | str = "all", since: Moment = None, level: str = ""
    ) -> AsyncIterator[LogEntry]: ...
    @property
    def containers(self) -> Any: ...


class Project:
    """A Compose project: `engine.compose(FILE)`. Put up at the beginning of a block, and taken down at its end.

    async with engine.compose("compose.yaml") as project:
        web = await project.container("web")
        print(web.port(80).url)
    """

    def __init__(
        self, engine: Engine, calls: Calls, file: str | Path, project: str, environment: Mapping[str, str] | None
    ) -> None:
        self._engine = engine
        self._calls = calls
        self._environment = dict(environment or {})
        self.file: Path = Path(file).absolute()  #: The Compose file
        self.name = project  #: The name of the project; empty until it is known, where the file says it

    async def __aenter__(self) -> Self:
        """Put the project up; the end of the block takes it down, with its networks. Volumes stay."""
        try:
            await self.up()
        except BaseException:
            # Why it is not up is what has to be told: a file that is wrong cannot be taken down either.
            with suppress(HuskError):
                await self._calls.tasks.to_its_end(self.down(), "take a project down")
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._calls.tasks.to_its_end(self.down(), "take a project down")

    async def up(self, *services: str, build: bool = False, wait: bool = True) -> None:
        """Make and start the containers of the project, and change those that the file says otherwise now.

        :param services: these services, and those that they need; all if none is named.
        :param build: build images anew.
        :param wait: wait until the services run, or are healthy where they have a health test.
        :raises CommandFailed: it did not work; the message has the words of Compose.
        :raises NotFound: there is no such file, or Docker's Compose plugin is not installed.
        """
        await self._named()
        options = [*(["--build"] if build else []), *(["--wait"] if wait else [])]
        await self._run("up", "--detach", "--remove-orphans", *options, *services)

    async def down(self, *, volumes: bool = False) -> None:
        """Stop and remove the containers and networks of the project.

        :param volumes: remove its volumes, too, with all that is in them.
        :raises CommandFailed: it did not work; the message has the words of Compose.
        """
        await self._run("down", "--remove-orphans", *(["--volumes"] if volumes else []))

    async def containers(self, service: str = "") -> list[Container]:
        """List the containers of the project, also those that do not run.

        :param service: those of this service alone.
        :returns: the containers.
        """
        await self._named()
        labels = [f"{_LABEL}.project={self.name}", *([f"{_LABEL}.service={service}"] if service else [])]
        found: list[Container] = await self._engine.containers.list(all=True, filters={"label": labels})
        return found

    async def container(self, service: str) -> Container:
        """Find the container of a service, the first if there are several.

        :param service: the name of the service.
        :returns: the container.
        :raises NotFound: the service has none.
        """
        for each in sorted(await self.containers(service), key=_number):
            await each.reload()
            return each
        raise NotFound(f"the service {service} of the project {self.name} has no container")

    async def logs(
        self, *, follow: bool = False, tail: int | str = "all", since: Moment = None, level: str = ""
    ) -> AsyncIterator[LogEntry]:
        """Read the logs of all containers of the project as one; as `Client.logs`.

        :param follow: go on with the lines to come, until all containers end.
        :param tail: the number of lines of each to begin with, counted from the end; `all` for all.
        :param since: the moment of the first line: a time, seconds since 1970, or a length before now, as `10m`.
        :param level: the least level, as for `Output.entries`.
        :returns: the lines as they come, each with the name of its container.
        """
        await self._named()
        async for entry in self._engine.logs(project=self.name, follow=follow, tail=tail, since=since, level=level):
            yield entry

    async def _named(self) -> None:
        if not self.name:
            self.name = str(json.loads(await self._run("config", "--format", "json"))["name"])

    async def _run(self, *arguments: str) -> str:
        if not self.file.is_file():
            raise NotFound(f"there is no Compose file {self.file}")
        named = ["--project-name", self.name] if self.name else []
        command = [plugin(), "--file", str(self.file), *named, "--ansi", "never", "--progress", "plain", *arguments]
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=self._variables()
            )
        except OSError as error:
            raise Unavailable(f"cannot run {command[0]}: {error.strerror}") from error
        try:
            said, complaint = await process.communicate()
        finally:
            if process.returncode is None:
                process.terminate()  # it takes back what it has begun
                await process.wait()
        if process.returncode:
            words = complaint.decode(errors="replace").strip()[-_SHOWN:]
            raise CommandFailed(f"compose {arguments[0]} failed:\n{words}", process.returncode)
        return said.decode()

    def _variables(self) -> dict[str, str]:
        if not self._calls.address:
            raise NotImplementedYet(
                "an engine of this process has no address that docker compose could use: connect to a daemon"
            )
        # What the caller's shell says of other engines and of other projects is not meant.
        foreign = ("COMPOSE_", "DOCKER_CONTEXT")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        return {**kept, "DOCKER_HOST": self._calls.address, **self._environment}


def plugin(environment: Mapping[str, str] = os.environ) -> str:
    """Find Docker's Compose plugin; NotFound says how it is installed."""
    for place in (config_directory(environment) / "cli-plugins", *_PLACES):
        path = os.path.join(place, _PLUGIN)
        if os.access(path, os.X_OK):
            return path
    if found := shutil.which(_PLUGIN, path=environment.get("PATH")):
        return found
    raise NotFound("Docker's Compose plugin is not here: its package is docker-compose-v2 or docker-compose-plugin")


def _number(container: Container) -> tuple[int, str]:
    text = container.labels.get(f"{_LABEL}.container-number", "")
    return (int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0, container.name)
