"""The containers of an engine: making them, finding them, running one to its end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from husk.client.calls import Calls, field
from husk.client.container import Container
from husk.client.filters import filters_of
from husk.errors import Conflict, NotFound

if TYPE_CHECKING:
    from husk.client.console import Console
    from husk.client.ending import Ending
    from husk.client.execs import Result
    from husk.client.images import Images
    from husk.client.runs import CapturedOutput
    from husk.client.spec import Command, ContainerSpec

T = TypeVar("T")

# When an image is pulled before a container is made of it.
MISSING, ALWAYS, NEVER = "missing", "always", "never"


class Containers:
    """`engine.containers`."""

    def __init__(self, calls: Calls, images: Images) -> None:
        self._calls = calls
        self._images = images

    async def create(
        self, image: str | ContainerSpec, command: Command = None, *, pull: str = MISSING, **spec: Any
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
        from husk.client.spec import document

        wanted = _spec(image, command, spec)
        body = document(wanted)
        return await self._with_image(wanted, pull, lambda: self._create(wanted, body))

    async def _with_image(self, wanted: ContainerSpec, pull: str, make: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `make`; pull the image first, or only when it is missing, or never, as `pull` says."""
        if pull == ALWAYS:
            await self._images.pull(wanted.image, platform=wanted.platform)
        try:
            return await make()
        except NotFound:
            if pull != MISSING or await self._has(wanted.image):
                raise
        await self._images.pull(wanted.image, platform=wanted.platform)
        return await make()

    async def get(self, name: str) -> Container:
        """Find a container.

        :param name: its name, its id, or the beginning of the id.
        :returns: the container.
        :raises NotFound: there is none.
        """
        return Container(self._calls, await self._calls.get(f"/containers/{name}/json"))

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
        return [Container(self._calls, each) for each in await self._calls.get("/containers/json", query)]

    async def prune(self, filters: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Remove all containers that do not run.

        :param filters: conditions by name: `{"until": "24h"}`.
        :returns: the API's document: `ContainersDeleted`, `SpaceReclaimed`.
        """
        found: dict[str, Any] = await self._calls.post("/containers/prune", None, {"filters": filters_of(filters)})
        return found

    @asynccontextmanager
    async def started(
        self, image: str | ContainerSpec, command: Command = None, *, pull: str = MISSING, **spec: Any
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
            await container.reload()
            yield container
        finally:
            await self._calls.tasks.to_its_end(self._gone(container), f"remove {container.short_id}")

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
        **spec: Any,
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
        import asyncio

        from husk.client.ending import ending
        from husk.client.runs import MOST_INPUT, CapturedOutput, NoSuchOperation, Runs

        wanted = _spec(image, command, spec, stdin=input is not None)
        # Where all there is to know is told with the end, it goes by itself: less to ask, and less to write down.
        goes = wanted.auto_remove or (not wanted.restart and await self._calls.asks_husk())
        wanted = _spec(wanted, None, {"log_driver": wanted.log_driver or "none", "auto_remove": goes})
        kept = CapturedOutput(max_output)
        if goes and len(input or b"") <= MOST_INPUT and await self._calls.asks_husk():
            runs = Runs(self._calls, self._gone)
            with suppress(NoSuchOperation):
                begun = await self._with_image(wanted, pull, lambda: runs.begin(wanted, input))
                return await runs.followed(begun, kept, timeout, kill_at_max_output)
        container = await self.create(wanted, pull=pull)
        gone = False
        try:
            async with (
                container.attach(stdin=input is not None) as console,
                ending(self._calls, f"/containers/{container.id}") if goes else _asked_later(container) as ended,
            ):
                await container.start()
                timed_out = killed = False
                try:
                    async with asyncio.timeout(timeout):
                        killed = not await _converse(console, input, kept, kill_at_max_output)
                        if not killed:
                            end = await ended()
                except TimeoutError:
                    timed_out = killed = True
                if killed:
                    with suppress(Conflict, NotFound):  # it has ended meanwhile, or is gone
                        await container.kill()
                    end = await ended()
            gone = goes
            return kept.result(end, timed_out=timed_out)
        finally:
            if not gone:
                await self._calls.tasks.to_its_end(self._gone(container), f"remove {container.short_id}")

    async def _create(self, wanted: ContainerSpec, body: dict[str, Any]) -> Container:
        query = {"name": wanted.name or None, "platform": wanted.platform or None}
        made = await self._calls.made(
            self._calls.post("/containers/create", body, query), lambda made: self._gone(Container(self._calls, made))
        )
        tty = {"Config": {"Tty": wanted.tty, "Image": wanted.image, "Labels": dict(wanted.labels)}}
        return Container(
            self._calls,
            {"Id": field(made, "Id"), "Name": wanted.name, "State": "created", "Warnings": made.get("Warnings"), **tty},
        )

    async def _gone(self, container: Container) -> None:
        try:
            await container.remove(force=True, volumes=True)
        except NotFound:
            return

    async def _has(self, image: str) -> bool:
        try:
            await self._images.get(image)
        except NotFound:
            return False
        return True


@asynccontextmanager
async def _asked_later(container: Container) -> AsyncIterator[Callable[[], Awaitable[Ending]]]:
    """The end of one that stays: it may start again before it has ended for good."""
    from husk.client.ending import Ending

    async def ended() -> Ending:
        code = await container.wait()
        if code:
            await container.reload()
        return Ending(code, bool(code and container.attrs["State"]["OOMKilled"]))

    yield ended


async def _converse(console: Console, given: bytes | None, kept: CapturedOutput, leave_when_full: bool) -> bool:
    """Write what is given and read what comes, both at once: a process may write before it has read all.

    False when it was left because it had written too much.
    """
    import asyncio

    async with asyncio.TaskGroup() as both:
        writing = None if given is None else both.create_task(_write(console, given))
        async for stream, data in console:
            kept.add(stream, data)
            if kept.truncated and leave_when_full:
                if writing is not None:
                    writing.cancel()
                return False
    return True


async def _write(console: Console, given: bytes) -> None:
    try:
        await console.write(given)
        await console.write_eof()
    except ConnectionError:
        return  # it ended without reading all


def _spec(
    image: str | ContainerSpec, command: Command, keywords: Mapping[str, Any], stdin: bool = False
) -> ContainerSpec:
    """A specification out of keywords, or out of another one with some of them changed."""
    from husk.client.spec import ContainerSpec

    if isinstance(image, ContainerSpec):
        from msgspec.structs import replace

        changes = {**keywords, **({"command": command} if command is not None else {})}
        return replace(image, **changes, stdin=stdin or image.stdin)
    return ContainerSpec(**{"image": image, "command": command, "stdin": stdin, **keywords})
