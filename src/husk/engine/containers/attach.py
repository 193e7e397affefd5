"""Attachments of clients to a container, each a client's line, and the switchboard they meet at.

The docker command attaches before it starts the container, so an attachment may exist before there is a process; it
becomes live when `lifecycle` connects the switchboard, between the making of the process and its first instruction.
There is one connection to the monitor for all attachments, because the monitor takes the end of any connection for the
end of the container's input.

Nobody waits for a client for ever. One that does not read has a buffer; when that is full it holds the output back, as
with Docker, so that a slow reader misses nothing. After a while without any progress it is dropped. The end of a
process waits for none of them: what it leaves behind goes into the buffers, and clients without room for it are dropped
soon, however many they are: one clock runs for all of them.

The end of the output is told after the end of the run: whoever has read to the end and looks finds the container
exited, with its exit code, and off its networks.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from itertools import groupby

from husk.aio.tasks import Tasks
from husk.engine.containers.drivers import Console
from husk.engine.logs.records import LogRecord

# Bytes that wait for a client before it holds the output back; as many again when the process has come to its end.
BUFFER = 1 << 20
# Seconds without progress until a client is dropped: while the process runs (somebody looks at `docker run … | less`),
# and when it is about to end.
PATIENCE, LAST_PATIENCE = 3600.0, 1.0
# Seconds after the end of the process until who has no room is dropped, whatever progress it makes.
LONGEST = 5.0
_LOOK = 0.1
Chunk = tuple[int, bytes]


class NotReading(ConnectionError):
    """The client was dropped because it did not read; it has missed output."""


class Ending:
    """The clock by which the clients of one process are given up, the same for all of them.

    Had each its own, those that do not read would delay the end by the sum of their delays."""

    def __init__(
        self,
        told: Callable[[], bool] = lambda: False,
        ended: Callable[[], bool] = lambda: False,
        patience: float = PATIENCE,
        last_patience: float = LAST_PATIENCE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`told` says whether the process was told to end, `ended` whether it has."""
        self.clock = clock
        self._patience, self._last_patience = patience, last_patience
        self._told = told
        self._ended = ended
        self._told_at: float | None = None
        self._ended_at: float | None = None

    def begin(self) -> None:
        """Forget the last run: there is a new process."""
        self._told_at = self._ended_at = None

    def look(self) -> bool:
        """Return True if the process has ended or was told to end. The clock runs from the first look that says so."""
        now, ended = self.clock(), self._ended()
        told = ended or self._told()
        self._told_at = (self._told_at or now) if told else None
        self._ended_at = (self._ended_at or now) if ended else None
        return told

    def deadline(self, progress: float) -> float:
        """Return the time at which a client without room is given up whose last progress was at `progress`."""
        if self._told_at is None:
            return progress + self._patience
        last = max(progress, self._told_at) + self._last_patience
        return last if self._ended_at is None else min(last, self._ended_at + LONGEST)


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
        ending: Ending | None = None,
        finished: asyncio.Future[None] | None = None,
    ) -> None:
        """`ending` is the clock of the process; `finished` is resolved when all output is out."""
        loop = asyncio.get_running_loop()
        self.tty = tty
        self._stdin = stdin
        self._streams = streams
        self._history = history
        self._live = live
        self._on_close = on_close
        self._on_detach = on_detach
        self._ending = ending or Ending()
        self._finished: asyncio.Future[None] = finished or loop.create_future()
        self._console: asyncio.Future[Console | None] = loop.create_future()
        self._output: deque[Chunk] = deque()
        self._size = 0
        self._progress = 0.0
        self._more = asyncio.Event()
        self._room = asyncio.Event()
        self._dropped = asyncio.Event()
        self._closed = False

    # --- for the switchboard

    def connected(self, console: Console) -> None:
        if not self._console.done():
            self._console.set_result(console)

    async def deliver(self, chunk: Chunk) -> None:
        """Hand over output. A client that does not read holds it back for a while, then it is dropped."""
        if chunk[0] not in self._streams or self._closed:
            return
        if self._size >= BUFFER:
            await self._until_room()
        if not self._closed:
            if not self._output:
                self._progress = self._ending.clock()  # until now there was nothing to read
            self._output.append(chunk)
            self._size += len(chunk[1])
            self._more.set()

    async def _until_room(self) -> None:
        while not self._closed:
            ending = self._ending.look()
            if self._size < (2 * BUFFER if ending else BUFFER):
                return
            if self._ending.clock() >= self._ending.deadline(self._progress):
                self._drop()
                return
            self._room.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK):
                    await self._room.wait()

    def _drop(self) -> None:
        self._dropped.set()
        self._let_go()
        self._on_close(self)

    def finish(self) -> None:
        """There will be no (more) output. Nothing is waited for: who tells this holds the container's lock."""
        if not self._console.done():
            self._console.set_result(None)
        if not self._finished.done():
            self._finished.set_result(None)
        self._more.set()

    # --- for the client

    async def output(self) -> AsyncIterator[Chunk]:
        """(stream, bytes) as they come, until the container's output ends. NotReading where some is missing."""
        if self._history is not None:
            async for batch in self._history:
                for source, records in groupby(batch, lambda record: record.stream):
                    yield source, b"".join(record.data for record in records)
        while self._live:
            if self._output:
                chunk = self._output.popleft()
                self._size -= len(chunk[1])
                self._progress = self._ending.clock()
                self._room.set()
                yield chunk
            elif self._dropped.is_set():
                raise NotReading("the client did not read: it was dropped")
            elif self._finished.done() or self._closed:
                return
            else:
                self._more.clear()
                await self._more.wait()

    async def dropped(self) -> None:
        """Wait for the moment when this client is given up."""
        await self._dropped.wait()

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
        self._let_go()
        self._on_close(self)

    def _let_go(self) -> None:
        self._closed = True
        if not self._console.done():
            self._console.set_result(None)
        self._output.clear()
        self._size = 0
        self._more.set()
        self._room.set()


class _Run:
    """The output of one run on its way to those who listen; `last` are those who hear of its end, once it is told."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.carrying: asyncio.Task[None] | None = None
        self.last: list[Attachment] | None = None

    @property
    def busy(self) -> bool:
        return self.carrying is not None and not self.carrying.done()


class Switchboard:
    """The attachments of one container, and its console while somebody listens to a running one."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._attachments: set[Attachment] = set()
        self._run: _Run | None = None
        self._console: Console | None = None
        self._ending: Ending | None = None

    def __bool__(self) -> bool:
        return bool(self._attachments)

    @property
    def connected(self) -> bool:
        return self._console is not None

    def ending(self, told: Callable[[], bool], ended: Callable[[], bool]) -> Ending:
        """The one clock of all attachments, made with the first of them."""
        if self._ending is None:
            self._ending = Ending(told, ended)
        return self._ending

    def add(self, attachment: Attachment) -> None:
        self._attachments.add(attachment)
        if self._console is not None:
            attachment.connected(self._console)

    def leave(self, attachment: Attachment) -> None:
        self._attachments.discard(attachment)
        if not self._attachments and self._run is not None and self._run.carrying is not None:
            # At once, not when the task gets its turn: who attaches before that must make a connection of their own.
            self._console = None
            self._run.carrying.cancel()

    def connect(self, console: Console) -> None:
        """The container has a process: carry its output to the attachments until it ends or nobody listens."""
        self._console = console
        if self._ending is not None:
            self._ending.begin()
        for attachment in self._attachments:
            attachment.connected(console)
        run = self._run = _Run(console)
        run.carrying = self._tasks.spawn(self._carry(run), "carry output")
        # Here, because a task that is cancelled before its first step never reaches a `finally`.
        run.carrying.add_done_callback(lambda _: console.close())

    def finish(self) -> None:
        """The end of the run is told, or there will be none: who waits now hears of it, after all that is written.

        Until then the output has no end, even if the monitor has no more of it."""
        waiting = list(self._attachments)
        if self._run is not None and self._run.busy:
            self._run.last = waiting
            return
        for attachment in waiting:
            attachment.finish()

    async def _carry(self, run: _Run) -> None:
        try:
            while (chunk := await run.console.read()) is not None:
                # Whoever has come since the end of this run was told waits for the next one.
                for attachment in list(self._attachments) if run.last is None else run.last:
                    await attachment.deliver(chunk)
        finally:
            if self._console is run.console:
                self._console = None
        for attachment in run.last or ():
            attachment.finish()
