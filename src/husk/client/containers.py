"""The containers of an engine: making them, finding them, running one to its end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Unpack

from husk.client.calls import Calls
from husk.client.container import Container, removed
from husk.client.filters import filters_of
from husk.client.images import Images
from husk.client.names import MISSING
from husk.client.thing import Listing

if TYPE_CHECKING:
    from husk.client.execs import Result
    from husk.client.keywords import ContainerOptions
    from husk.client.making import Making
    from husk.client.spec import Command, ContainerSpec


class Containers:
    """`engine.containers`."""

    def __init__(self, calls: Calls, images: Images) -> None:
        self._calls = calls
        self._images = images

    async def create(
        self,
        image: str | ContainerSpec,
        command: Command = None,
        *,
        pull: str = MISSING,
        **spec: Unpack[ContainerOptions],
    ) -> Container:
        """Make a container without starting it. A call that is cancelled leaves none behind.

        :param image: the name of an image, or a specification.
        :param command: the command and its arguments; a single string is taken apart as a shell does it.
        :param pull: `missing`, `always` or `never`: when the image is pulled before.
        :param spec: the fields of `ContainerSpec`; they replace those of a specification.
        :returns: the container.
        :raises NotFound: there is no such image, here or in its registry.
        :raises Conflict: another container has the name.
        :raises InvalidParameter: a field makes no sense; nothing was made.
        """
        return await self._making.create(image, command, pull, spec)

    async def get(self, name: str, *, size: bool = False) -> Container:
        """Find a container.

        :param name: its name, its id, or the beginning of the id.
        :param size: tell the sizes of its files, which takes longer.
        :returns: the container.
        :raises NotFound: there is none.
        """
        return Container(self._calls, await self._calls.get(f"/containers/{name}/json", {"size": size or None}))

    async def list(
        self, *, all: bool = False, limit: int = 0, size: bool = False, filters: Mapping[str, Any] | None = None
    ) -> list[Container]:
        """List the containers that run. They know what a list tells: `reload` one to know all of it.

        :param all: list those that do not run, too.
        :param limit: the largest number, the newest first; 0 for all.
        :param size: tell the sizes of their files, which takes longer.
        :param filters: conditions by name: `{"label": "team=red", "status": ["exited"]}`.
        :returns: the containers, the newest first.
        """
        query = {"all": all, "limit": limit or None, "size": size, "filters": filters_of(filters)}
        return Listing(Container(self._calls, each) for each in await self._calls.get("/containers/json", query))

    async def prune(self, filters: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Remove all containers that do not run.

        :param filters: conditions by name: `{"until": "24h"}`.
        :returns: the API's document: `ContainersDeleted`, `SpaceReclaimed`.
        """
        found: dict[str, Any] = await self._calls.post("/containers/prune", None, {"filters": filters_of(filters)})
        return found

    @asynccontextmanager
    async def started(
        self,
        image: str | ContainerSpec,
        command: Command = None,
        *,
        pull: str = MISSING,
        **spec: Unpack[ContainerOptions],
    ) -> AsyncIterator[Container]:
        """Make and start a container; it is stopped and removed at the end of the block.

        :param image: the name of an image, or a specification.
        :param command: the command and its arguments; a single string is taken apart as a shell does it.
        :param pull: `missing`, `always` or `never`: when the image is pulled before.
        :param spec: the fields of `ContainerSpec`; they replace those of a specification.
        :returns: the container.
        :raises NotFound: there is no such image, here or in its registry.
        """
        container = await self.create(image, command, pull=pull, **spec)
        try:
            await container.start()
            yield container
        finally:
            await self._calls.tasks.to_its_end(removed(container), f"remove {container.short_id}")

    async def run(
        self,
        image: str | ContainerSpec,
        command: Command = None,
        *,
        input: bytes | None = None,
        timeout: float | None = None,
        max_output: int | None = None,
        kill_at_max_output: bool = False,
        pull: str = MISSING,
        **spec: Unpack[ContainerOptions],
    ) -> Result:
        """Run a container to its end, and remove it.

        Nothing of what it writes is kept on disk, unless a log driver is asked for. Whoever waits no longer ends the
        container:
        a call that is cancelled leaves none behind.

        :param image: the name of an image, or a specification.
        :param command: the command and its arguments; a single string is taken apart as a shell does it.
        :param input: bytes that the process reads; it reads nothing without them.
        :param timeout: seconds, after which the container is killed.
        :param max_output: the number of bytes that are kept of each stream; all if None.
        :param kill_at_max_output: kill the container when it writes more than `max_output`.
        :param pull: `missing`, `always` or `never`: when the image is pulled before.
        :param spec: the fields of `ContainerSpec`; they replace those of a specification.
        :returns: the exit code and the output.
        :raises NotFound: there is no such image, here or in its registry.
        :raises InvalidParameter: a field makes no sense; nothing was made.
        """
        return await self._making.run(
            image,
            command,
            input=input,
            timeout=timeout,
            max_output=max_output,
            kill_at_max_output=kill_at_max_output,
            pull=pull,
            spec=spec,
        )

    @property
    def _making(self) -> Making:
        # A door: asyncio and msgspec, which a short command would wait longer for than for its answer.
        from husk.client.making import Making

        return Making(self._calls, self._images)
