"""Making of containers: what is asked for, the image that is missing, and a run to its end."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from msgspec.structs import replace

from husk.client.calls import Calls, field
from husk.client.console import Console
from husk.client.container import Container, removed
from husk.client.ending import Ending, ending
from husk.client.execs import Result
from husk.client.images import Images
from husk.client.misspelt import require_known
from husk.client.names import ALWAYS, MISSING
from husk.client.runs import MOST_INPUT, CapturedOutput, NoSuchOperation, Runs
from husk.client.spec import Command, ContainerSpec, document
from husk.errors import Conflict, NotFound

T = TypeVar("T")

_KEYWORDS = frozenset(ContainerSpec.__struct_fields__) - {"image", "command"}


class Making:
    def __init__(self, calls: Calls, images: Images) -> None:
        self._calls = calls
        self._images = images

    async def create(
        self, image: str | ContainerSpec, command: Command, pull: str, spec: Mapping[str, Any]
    ) -> Container:
        """Make a container that is not started."""
        container = await self._made(_spec(image, command, spec), pull)
        await self._calls.made(self._seen(container), lambda _: removed(container))
        return container

    async def _made(self, wanted: ContainerSpec, pull: str) -> Container:
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

    async def run(
        self,
        image: str | ContainerSpec,
        command: Command,
        *,
        input: bytes | None,
        timeout: float | None,
        max_output: int | None,
        kill_at_max_output: bool,
        pull: str,
        spec: Mapping[str, Any],
    ) -> Result:
        """Run a container to its end, and remove it."""
        wanted = _spec(image, command, spec, stdin=input is not None)
        # Where all there is to know is told with the end, it goes by itself: less to ask, and less to write down.
        goes = wanted.auto_remove or (not wanted.restart and await self._calls.asks_husk())
        wanted = _spec(wanted, None, {"log_driver": wanted.log_driver or "none", "auto_remove": goes})
        kept = CapturedOutput(max_output)
        if goes and len(input or b"") <= MOST_INPUT and await self._calls.asks_husk():
            runs = Runs(self._calls, removed)
            with suppress(NoSuchOperation):
                begun = await self._with_image(wanted, pull, lambda: runs.begin(wanted, input))
                return await runs.followed(begun, kept, timeout, kill_at_max_output)
        container = await self._made(wanted, pull)
        gone = False
        try:
            async with (
                container.attach(stdin=input is not None) as console,
                ending(self._calls, f"/containers/{container.id}") if goes else _asked_later(container) as ended,
            ):
                await self._calls.post(f"/containers/{container.id}/start")
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
                await self._calls.tasks.to_its_end(removed(container), f"remove {container.short_id}")

    async def _create(self, wanted: ContainerSpec, body: dict[str, Any]) -> Container:
        query = {"name": wanted.name or None, "platform": wanted.platform or None}
        made = await self._calls.made(
            self._calls.post("/containers/create", body, query), lambda made: removed(Container(self._calls, made))
        )
        known = {"Id": field(made, "Id"), "Warnings": made.get("Warnings"), "Config": {"Tty": wanted.tty}}
        return Container(self._calls, known)

    async def _seen(self, container: Container) -> None:
        """Learn its name and all else; what cannot be learnt must not stay behind."""
        try:
            told = await self._calls.get(f"/containers/{container.id}/json")
        except BaseException:
            await removed(container)
            raise
        container.attrs = {"Warnings": container.attrs["Warnings"], **told}

    async def _has(self, image: str) -> bool:
        try:
            await self._images.get(image)
        except NotFound:
            return False
        return True


@asynccontextmanager
async def _asked_later(container: Container) -> AsyncIterator[Callable[[], Awaitable[Ending]]]:
    """The end of one that stays: it may start again before it has ended for good."""

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
    require_known(keywords, _KEYWORDS, "a container", "ContainerSpec")
    if isinstance(image, ContainerSpec):
        changes = {**keywords, **({"command": command} if command is not None else {})}
        return replace(image, **changes, stdin=stdin or image.stdin)
    return ContainerSpec(**{"image": image, "command": command, "stdin": stdin, **keywords})
