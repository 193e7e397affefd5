"""Who listens to a container and talks to it? Attachments, each a client's line, and the switchboard they meet at.

The docker command attaches before it starts the container, so an attachment may exist before there is a process; it
becomes live when `lifecycle` connects the switchboard, between the making of the process and its first instruction.
There is one connection to the monitor for all attachments, because the monitor takes the end of any connection for the
end of the container's input.
"""

import asyncio
from collections.abc import AsyncIterator, Callable

from husk.engine.containers.logs import LogRecord
from husk.runtime.conmon import Console
from husk.tasks import Tasks

QUEUE = 64
Chunk = tuple[int, bytes]


class Attachment:
    """One client's view: output that it asked for, and input if it asked for that."""

    def __init__(
        self,
        *,
        tty: bool,
        stdin: bool,
        streams: frozenset[int],
        history: AsyncIterator[list[LogRecord]] | None,
        live: bool,
        on_close: Callable[["Attachment"], None],
        on_detach: Callable[[], None],
    ) -> None:
        self.tty = tty
        self._stdin = stdin
        self._streams = streams
        self._history = history
        self._live = live
        self._on_close = on_close
        self._on_detach = on_detach
        self._console: asyncio.Future[Console | None] = asyncio.get_running_loop().create_future()
        self._output: asyncio.Queue[Chunk | None] = asyncio.Queue(QUEUE)
        self._closed = False

    # --- for the switchboard

    def connected(self, console: Console) -> None:
        if not self._console.done():
            self._console.set_result(console)

    async def deliver(self, chunk: Chunk) -> None:
        """Hand over output. A client that does not read holds the container's output back, as with Docker."""
        if chunk[0] in self._streams and not self._closed:
            await self._output.put(chunk)

    async def finish(self) -> None:
        """There will be no (more) output."""
        if not self._console.done():
            self._console.set_result(None)
        if not self._closed:
            await self._output.put(None)

    # --- for the client

    async def output(self) -> AsyncIterator[Chunk]:
        """(stream, bytes) as they come, until the container's output ends."""
        if self._history is not None:
            async for batch in self._history:
                for record in batch:
                    yield record.stream, record.data
        while self._live and (chunk := await self._output.get()) is not None:
            yield chunk

    async def write(self, data: bytes) -> None:
        """Input for the container; waits for its start, and is dropped where stdin was not asked for or is gone."""
        if self._stdin and (console := await asyncio.shield(self._console)) is not None:
            await console.write(data)

    async def close_stdin(self) -> None:
        if self._stdin and (console := await asyncio.shield(self._console)) is not None:
            console.close_stdin()

    def detached(self) -> None:
        """The client left by its detach keys."""
        self._on_detach()

    async def close(self) -> None:
        self._closed = True
        if not self._console.done():
            self._console.set_result(None)
        while not self._output.empty():
            self._output.get_nowait()
        self._on_close(self)


class Switchboard:
    """The attachments of one container, and its console while somebody listens to a running one."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._attachments: set[Attachment] = set()
        self._console: Console | None = None
        self._carrying: asyncio.Task[None] | None = None

    def __bool__(self) -> bool:
        return bool(self._attachments)

    @property
    def connected(self) -> bool:
        return self._console is not None

    def add(self, attachment: Attachment) -> None:
        self._attachments.add(attachment)
        if self._console is not None:
            attachment.connected(self._console)

    def leave(self, attachment: Attachment) -> None:
        self._attachments.discard(attachment)
        if not self._attachments and self._carrying is not None:
            # At once, not when the task gets its turn: who attaches before that must make a connection of their own.
            self._console = None
            self._carrying.cancel()

    def connect(self, console: Console) -> None:
        """The container has a process: carry its output to the attachments until it ends or nobody listens."""
        self._console = console
        for attachment in self._attachments:
            attachment.connected(console)
        self._carrying = self._tasks.spawn(self._carry(console), "carry output")
        # Here, because a task that is cancelled before its first step never reaches a `finally`.
        self._carrying.add_done_callback(lambda _: console.close())

    async def finish(self) -> None:
        """The container will not run for those who wait for it now."""
        if self._console is None:
            for attachment in list(self._attachments):
                await attachment.finish()

    async def _carry(self, console: Console) -> None:
        try:
            while (chunk := await console.read()) is not None:
                for attachment in list(self._attachments):
                    await attachment.deliver(chunk)
        finally:
            if self._console is console:
                self._console = None
        for attachment in list(self._attachments):
            await attachment.finish()
