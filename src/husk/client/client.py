"""An engine, seen from a program: its containers, images and all else, and the few things that are the engine's own."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from husk.client.calls import Calls
from husk.client.container import Container
from husk.client.containers import MISSING, Containers
from husk.client.dial import Dial, dialer
from husk.client.execs import Result
from husk.client.images import Images
from husk.client.spec import Command, ContainerSpec


class Client:
    """What can be asked of an engine, wherever it is. `husk.connect` makes one for a daemon's socket.

    async with husk.connect("unix:///run/husk.sock") as engine:
        print((await engine.run("busybox", ["echo", "hi"])).stdout)
    """

    def __init__(self, dial: Dial) -> None:
        self._calls = Calls(dial)
        self.images = Images(self._calls)
        self.containers = Containers(self._calls, self.images)

    async def run(self, image: str | ContainerSpec, command: Command = None, **spec: Any) -> Result:
        """Run a container to its end; as `containers.run`."""
        return await self.containers.run(image, command, **spec)

    def container(
        self, image: str | ContainerSpec, command: Command = None, *, pull: str = MISSING, **spec: Any
    ) -> AbstractAsyncContextManager[Container]:
        """A started container for the length of a block; as `containers.started`."""
        return self.containers.started(image, command, pull=pull, **spec)

    async def ping(self) -> None:
        """Does it answer? Unavailable where it does not."""
        async with self._calls.answer("GET", "/_ping") as response:
            await response.read()

    async def info(self) -> dict[str, Any]:
        found: dict[str, Any] = await self._calls.get("/info")
        return found

    async def version(self) -> dict[str, Any]:
        found: dict[str, Any] = await self._calls.get("/version")
        return found

    async def df(self) -> dict[str, Any]:
        """What takes how much room."""
        found: dict[str, Any] = await self._calls.get("/system/df")
        return found

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


def connect(address: str = "") -> AbstractAsyncContextManager[Client]:
    """The engine of a daemon that listens at `unix:///path` or `tcp://host:port`."""
    return connected(Client(dialer(address or "unix:///run/husk.sock")))
