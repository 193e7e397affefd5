"""An engine, seen from a program: its containers, images and all else, and the few things that are the engine's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from husk.client.address import resolve
from husk.client.calls import Calls
from husk.client.containers import MISSING, Containers
from husk.client.dial import Dial, dialer_to
from husk.client.images import Images
from husk.client.names import host_of

if TYPE_CHECKING:
    from husk.client.container import Container
    from husk.client.credentials import Keychain
    from husk.client.events import Event
    from husk.client.execs import Result
    from husk.client.http import Reader, Writer
    from husk.client.moments import Moment
    from husk.client.networks import Networks
    from husk.client.plugins import Plugins
    from husk.client.prune import Pruned
    from husk.client.service_files import Configs, Secrets
    from husk.client.services import Services, ServiceTasks
    from husk.client.spec import Command, ContainerSpec
    from husk.client.swarm import Nodes, Swarm
    from husk.client.volumes import Volumes


class Client:
    """A client of one engine, wherever that runs. `husk.connect` makes one for a daemon's socket.

    async with husk.connect("unix:///run/husk.sock") as engine:
        print((await engine.run("busybox", ["echo", "hi"])).stdout)
    """

    def __init__(self, dial: Dial) -> None:
        self._calls = calls = Calls(dial)
        self.images = Images(calls, lambda: self._keychain)
        self.containers = Containers(calls, self.images)

    # Parts that most programs never ask for are loaded by those that do.

    @cached_property
    def _keychain(self) -> Keychain:
        from husk.client.credentials import Keychain

        return Keychain()

    @cached_property
    def networks(self) -> Networks:
        from husk.client.networks import Networks

        return Networks(self._calls)

    @cached_property
    def volumes(self) -> Volumes:
        from husk.client.volumes import Volumes

        return Volumes(self._calls)

    @cached_property
    def swarm(self) -> Swarm:
        from husk.client.swarm import Swarm

        return Swarm(self._calls)

    @cached_property
    def nodes(self) -> Nodes:
        from husk.client.swarm import Nodes

        return Nodes(self._calls)

    @cached_property
    def services(self) -> Services:
        from husk.client.services import Services

        return Services(self._calls, self._keychain)

    @cached_property
    def tasks(self) -> ServiceTasks:
        from husk.client.services import ServiceTasks

        return ServiceTasks(self._calls)

    @cached_property
    def secrets(self) -> Secrets:
        from husk.client.service_files import Secrets

        return Secrets(self._calls)

    @cached_property
    def configs(self) -> Configs:
        from husk.client.service_files import Configs

        return Configs(self._calls)

    @cached_property
    def plugins(self) -> Plugins:
        from husk.client.plugins import Plugins

        return Plugins(self._calls)

    async def run(self, image: str | ContainerSpec, command: Command = None, **spec: Any) -> Result:
        """Run a container to its end; as `containers.run`."""
        return await self.containers.run(image, command, **spec)

    def container(
        self, image: str | ContainerSpec, command: Command = None, *, pull: str = MISSING, **spec: Any
    ) -> AbstractAsyncContextManager[Container]:
        """A started container for the length of a block; as `containers.started`."""
        return self.containers.started(image, command, pull=pull, **spec)

    async def ping(self) -> None:
        """Check that the engine answers; Unavailable if it does not."""
        await self._calls.ping()

    async def upgrade(self, path: str, protocol: str) -> tuple[bytes, Reader, Writer]:
        """A connection that speaks another protocol from now on, as `/grpc` does: what came with the answer, and both
        directions. The caller closes the writer."""
        return await self._calls.upgrade(path, protocol=protocol)

    async def info(self) -> dict[str, Any]:
        """Describe the engine, and how much it has: docker's `info`."""
        found: dict[str, Any] = await self._calls.get("/info")
        return found

    async def version(self) -> dict[str, Any]:
        """Return the engine's name and version, and the version of its API."""
        found: dict[str, Any] = await self._calls.get("/version")
        return found

    async def df(self, *types: str) -> dict[str, Any]:
        """Return the room on the disk that things take: all, or only `container`, `image`, `volume`, `build-cache`."""
        found: dict[str, Any] = await self._calls.get("/system/df", {"type": types})
        return found

    def events(
        self, *, since: Moment = None, until: Moment = None, filters: Mapping[str, Any] | None = None
    ) -> AsyncIterator[Event]:
        """Yield the events from now on, or since a moment; to the end of time, or until a moment.

        async for event in engine.events(filters={"type": "container", "event": ["die", "oom"]}):
            print(event.name, event.action)
        """
        from husk.client.events import events

        return events(self._calls, since, until, filters)

    async def login(
        self, username: str = "", password: str = "", *, registry: str = "", identity_token: str = ""
    ) -> None:
        """Say who we are at a registry (without one: Docker's own); Unauthorized where it does not believe it.

        This client remembers it for what comes later, and writes it nowhere.
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
        """Remove what nobody uses: containers that do not run, networks, images without a name (with `all`: all that
        no container has), what builds have kept, and with `volumes` volumes without a name."""
        from husk.client.prune import pruned

        return await pruned(self, all, volumes, filters or {})

    def connect(self) -> AbstractAsyncContextManager[Client]:
        """The same engine for another event loop: one of another thread, or of a test."""
        return connected(Client(self._calls.dial))

    async def close(self) -> None:
        """Let what must not be cut off come to its end, and close the connections."""
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
    """The engine of a daemon that listens at `unix:///path` or `tcp://host:port`, or is behind `ssh://user@host`.

    Without an address, that of a docker context, or what `HUSK_HOST`, `DOCKER_HOST` (with `DOCKER_TLS_VERIFY` and
    `DOCKER_CERT_PATH`) and the docker client's settings say.

    async with husk.connect("unix:///run/husk.sock") as engine:
        print(await engine.containers.list())
    """
    return connected(Client(dialer_to(resolve(address, context))))
