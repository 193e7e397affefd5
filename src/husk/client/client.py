"""An engine, seen from a program: its containers, images and all else, and the few things that are the engine's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from husk.client.address import resolve
from husk.client.calls import Calls
from husk.client.container import Container
from husk.client.containers import Containers
from husk.client.http import Dial, Reader, Writer
from husk.client.images import Images
from husk.client.moments import Moment
from husk.client.names import MISSING, host_of
from husk.client.networks import Networks
from husk.client.plugins import Plugins
from husk.client.volumes import Volumes

if TYPE_CHECKING:
    from husk.client.compose import Project
    from husk.client.credentials import Keychain
    from husk.client.events import Event
    from husk.client.execs import Result
    from husk.client.keywords import ContainerOptions, RunOptions
    from husk.client.logs import LogEntry
    from husk.client.parts import Parts
    from husk.client.prune import Pruned
    from husk.client.service_files import Configs, Secrets
    from husk.client.services import Services, ServiceTasks
    from husk.client.spec import Command, ContainerSpec
    from husk.client.stats import Stats
    from husk.client.swarm import Nodes, Swarm


class Client:
    """A client of one engine, wherever that runs. `husk.connect` makes one for a daemon's socket.

    async with husk.connect("unix:///run/husk.sock") as engine:
        print((await engine.run("busybox", ["echo", "hi"])).stdout)
    """

    def __init__(self, dial: Dial, address: str = "") -> None:
        self._calls = calls = Calls(dial, address)
        self.images = Images(calls, lambda: self._keychain)  #: The images of the engine
        self.containers = Containers(calls, self.images)  #: The containers of the engine

    # Parts that most programs never ask for are loaded by those that do.

    @cached_property
    def _parts(self) -> Parts:
        # A door: msgspec, which a short command would wait longer for than for its answer.
        from husk.client.parts import Parts

        return Parts(self._calls)

    @property
    def _keychain(self) -> Keychain:
        return self._parts.keychain

    @cached_property
    def networks(self) -> Networks:
        """The networks of the engine."""
        return Networks(self._calls)

    @cached_property
    def volumes(self) -> Volumes:
        """The volumes of the engine."""
        return Volumes(self._calls)

    @property
    def swarm(self) -> Swarm:
        """The swarm that the engine is part of."""
        return self._parts.swarm

    @property
    def nodes(self) -> Nodes:
        """The nodes of the swarm."""
        return self._parts.nodes

    @property
    def services(self) -> Services:
        """The services of the swarm."""
        return self._parts.services

    @property
    def tasks(self) -> ServiceTasks:
        """The tasks of all services."""
        return self._parts.tasks

    @property
    def secrets(self) -> Secrets:
        """The secrets of the swarm."""
        return self._parts.secrets

    @property
    def configs(self) -> Configs:
        """The configs of the swarm."""
        return self._parts.configs

    @cached_property
    def plugins(self) -> Plugins:
        """The plugins of the engine."""
        return Plugins(self._calls)

    async def run(self, image: str | ContainerSpec, command: Command = None, **spec: Unpack[RunOptions]) -> Result:
        """Run a container to its end, and remove it; `containers.run` lists all arguments.

        :param image: the name of an image, or a specification.
        :param command: the command and its arguments; a single string is taken apart as a shell does it.
        :param spec: the other arguments of `containers.run`, and the fields of `ContainerSpec`.
        :returns: the exit code and the output.
        :raises NotFound: there is no such image, and `pull` forbids to get it.
        """
        return await self.containers.run(image, command, **spec)

    def container(
        self,
        image: str | ContainerSpec,
        command: Command = None,
        *,
        pull: str = MISSING,
        **spec: Unpack[ContainerOptions],
    ) -> AbstractAsyncContextManager[Container]:
        """Make and start a container for the length of a block; as `containers.started`.

        :param image: the name of an image, or a specification.
        :param command: the command and its arguments; a single string is taken apart as a shell does it.
        :param pull: `missing`, `always` or `never`: when the image is pulled before.
        :param spec: the fields of `ContainerSpec`.
        :returns: a context manager that gives the container, and removes it at its end.
        """
        return self.containers.started(image, command, pull=pull, **spec)

    async def ping(self) -> None:
        """Check that the engine answers.

        :raises Unavailable: it does not.
        """
        await self._calls.ping()

    async def upgrade(self, path: str, protocol: str) -> tuple[bytes, Reader, Writer]:
        """Open a connection that speaks another protocol from now on, as `/grpc` does. The caller closes the writer.

        :param path: the path to ask for.
        :param protocol: the name of the protocol, for the header `Upgrade`.
        :returns: what came with the answer, and both directions.
        """
        return await self._calls.upgrade(path, protocol=protocol)

    async def info(self) -> dict[str, Any]:
        """Describe the engine, and how much it has: docker's `info`.

        :returns: the API's document.
        """
        found: dict[str, Any] = await self._calls.get("/info")
        return found

    async def version(self) -> dict[str, Any]:
        """Tell the engine's name and version, and the version of its API.

        :returns: the API's document.
        """
        found: dict[str, Any] = await self._calls.get("/version")
        return found

    async def df(self, *types: str) -> dict[str, Any]:
        """Tell the room on the disk that things take.

        :param types: `container`, `image`, `volume`, `build-cache`; all of them if none is named.
        :returns: the API's document.
        """
        found: dict[str, Any] = await self._calls.get("/system/df", {"type": types})
        return found

    def events(
        self, *, since: Moment = None, until: Moment = None, filters: Mapping[str, Any] | None = None
    ) -> AsyncIterator[Event]:
        """Yield events from now on, or since a moment; without end, or until a moment.

        async for event in engine.events(filters={"type": "container", "event": ["die", "oom"]}):
            print(event.name, event.action)

        :param since: the moment of the first event: a time, seconds since 1970, or a length before now, as `10m`.
        :param until: the moment of the last event, in the same forms.
        :param filters: conditions by name: `{"type": "container", "event": ["die"]}`.
        :returns: the events, one by one.
        """
        return self._parts.events(since, until, filters)

    async def stats(self, *containers: str | Container, interval: float = 1.0) -> AsyncIterator[dict[str, Stats]]:
        """Measure the use of resources of many containers, again and again.

        async for stats in engine.stats():
            print({name: f"{each.cpu_percent:.0f} %" for name, each in stats.items()})
            break

        :param containers: the containers, or their names; all that run, also those to come, if none is named.
        :param interval: seconds between two rounds; `cpu_percent` is 0 in the first.
        :returns: the rounds: a sample for each name. A container that does not run is left out.
        """
        async for each in self._parts.stats(self.containers, containers, interval):
            yield each

    async def logs(
        self,
        *containers: str | Container,
        project: str = "",
        follow: bool = False,
        tail: int | str = "all",
        since: Moment = None,
        level: str = "",
    ) -> AsyncIterator[LogEntry]:
        """Read the logs of several containers as one.

        async for entry in engine.logs(project="shop", level="warning"):
            print(entry.container, entry.level, entry.text)

        :param containers: the containers, or their names; all that run if neither these nor a project are named.
        :param project: the name of a Compose project, whose containers they are.
        :param follow: go on with the lines to come, until all of them end.
        :param tail: the number of lines of each to begin with, counted from the end; `all` for all.
        :param since: the moment of the first line: a time, seconds since 1970, or a length before now, as `10m`.
        :param level: the least level, as for `Output.entries`.
        :returns: the lines as they come, each with the name of its container.
        :raises NotFound: there is no such container.
        :raises InvalidParameter: there is no such level.
        """
        found = await self._parts.named(self.containers, containers, project)
        async for each in self._parts.entries(found, follow=follow, tail=tail, since=since, level=level):
            yield each

    def compose(
        self,
        file: str | PathLike[str] = "compose.yaml",
        *,
        project: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> Project:
        """Describe a Compose project, which Docker's Compose plugin puts up and takes down on this engine.

        async with engine.compose("compose.yaml") as project:
            print([box.name for box in await project.containers()])

        :param file: the Compose file.
        :param project: the name of the project; what the file says, or the name of its directory, if empty.
        :param environment: variables that the file uses, beside those of the program.
        :returns: the project.
        """
        return self._parts.compose(self, Path(file), project, environment)

    async def login(
        self, username: str = "", password: str = "", *, registry: str = "", identity_token: str = ""
    ) -> None:
        """Check a name and a password at a registry. This client uses them for later calls, and writes them nowhere.

        :param username: the name of the account.
        :param password: its password, or an access token.
        :param registry: the host of the registry; Docker Hub if empty.
        :param identity_token: a token that stands for name and password.
        :raises Unauthorized: the registry does not believe it.
        """
        auth = {"username": username, "password": password, "serveraddress": host_of(registry)}
        if identity_token:
            auth = {"identitytoken": identity_token, "serveraddress": host_of(registry)}
        answer = await self._calls.post("/auth", auth) or {}
        if token := answer.get("IdentityToken"):
            auth = {"identitytoken": token, "serveraddress": host_of(registry)}
        self._keychain.remember(registry, auth)

    async def prune(
        self, *, all: bool = False, volumes: bool = False, filters: Mapping[str, Any] | None = None
    ) -> Pruned:
        """Remove what nobody uses: containers that do not run, networks, images without a name, and what builds keep.

        :param all: remove all images that no container uses, also those with a name.
        :param volumes: remove volumes without a name that no container uses, too.
        :param filters: conditions by name: `{"until": "24h", "label": "team=red"}`.
        :returns: the things that were removed, and the room that this makes.
        """
        return await self._parts.pruned(self, all, volumes, filters or {})

    def connect(self) -> AbstractAsyncContextManager[Client]:
        """Open the same engine for another event loop: that of another thread, or of a test.

        :returns: a context manager that gives a client of that loop.
        """
        return connected(Client(self._calls.dial, self._calls.address))

    async def close(self) -> None:
        """Wait for the work that must not be cut off, and close the connections."""
        await self._calls.close()


@asynccontextmanager
async def connected(client: Client) -> AsyncIterator[Client]:
    """The client while it can be used."""
    try:
        await client.ping()
        yield client
    finally:
        await client.close()


def connect(address: str = "", *, context: str = "") -> AbstractAsyncContextManager[Client]:
    """Connect to the engine of a daemon.

    Without an address, a docker context says it, or `HUSK_HOST`, `DOCKER_HOST` (with `DOCKER_TLS_VERIFY` and
    `DOCKER_CERT_PATH`) and the settings of the docker client.

    async with husk.connect("unix:///run/husk.sock") as engine:
        print(await engine.containers.list())

    :param address: `unix:///path`, `tcp://host:port` or `ssh://user@host`.
    :param context: the name of a docker context, in place of an address.
    :returns: a context manager that gives the client.
    :raises InvalidParameter: the address has no known form, or there is no such context.
    :raises Unavailable: nobody answers there.
    """
    # A door: asyncio, which short commands do without.
    from husk.client.dial import dialer_to

    place = resolve(address, context)
    return connected(Client(dialer_to(place), place.url))
