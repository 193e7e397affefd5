"""The log of what a build has told so far, for whoever wants to hear it: from the beginning, until its end."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence

from msgspec import Struct

from husk.builder.graph.graph import Location, SourceFile, Vertex
from husk.builder.graph.progress import LogLimit, Status
from husk.engine.model.clock import now_ns

STDOUT, STDERR = 1, 2
# What a thing takes beside its bytes.
_EACH = 100


class VertexTold(Struct, frozen=True, kw_only=True):
    vertex: Vertex
    started: int = 0  # nanoseconds
    completed: int = 0
    cached: bool = False
    error: str = ""


class StatusTold(Struct, frozen=True, kw_only=True):
    vertex: str
    status: Status
    started: int
    timestamp: int
    completed: int = 0


class LogTold(Struct, frozen=True, kw_only=True):
    vertex: str
    stream: int
    data: bytes
    timestamp: int


class WarningTold(Struct, frozen=True, kw_only=True):
    vertex: str
    level: int
    short: bytes
    detail: list[bytes] = []
    url: str = ""
    source: SourceFile | None = None
    locations: list[Location] = []

    @property
    def size(self) -> int:
        """About as many bytes as it takes, here and on its way."""
        size = len(self.vertex) + len(self.short) + len(self.url) + sum(map(len, self.detail))
        size += _EACH * (1 + len(self.detail) + len(self.locations))
        return size + (len(self.source.name) + len(self.source.content) if self.source else 0)


Told = VertexTold | StatusTold | LogTold | WarningTold


class StatusLog:
    """One build's progress."""

    def __init__(self) -> None:
        self.told: list[Told] = []
        self._changed = asyncio.Event()
        self._closed = asyncio.Event()
        self._begun: dict[str, int] = {}
        self._items: dict[tuple[str, str], int] = {}
        self._limit = LogLimit()

    # --- Progress ----------------------------------------------------------------------------------------------------

    def started(self, vertex: Vertex) -> None:
        self._begun[vertex.digest] = now_ns()
        self._tell(VertexTold(vertex=vertex, started=self._begun[vertex.digest]))

    def log(self, vertex: Vertex, data: bytes, *, stderr: bool) -> None:
        if data := self._limit.cut(vertex, data):
            stream = STDERR if stderr else STDOUT
            self._tell(LogTold(vertex=vertex.digest, stream=stream, data=data, timestamp=now_ns()))

    def status(self, vertex: Vertex, status: Status) -> None:
        now = now_ns()
        started = self._items.setdefault((vertex.digest, status.id), now)
        done = now if status.done else 0
        self._tell(StatusTold(vertex=vertex.digest, status=status, started=started, timestamp=now, completed=done))

    def ended(
        self,
        vertex: Vertex,
        *,
        cached: bool = False,
        error: str = "",
        cancelled: bool = False,
        outputs: Sequence[str] = (),
    ) -> None:
        now = now_ns()
        error = "context canceled" if cancelled else error
        started = self._begun.get(vertex.digest, now)
        self._tell(VertexTold(vertex=vertex, started=started, completed=now, cached=cached, error=error))

    # --- others ------------------------------------------------------------------------------------------------------

    def warn(self, warning: WarningTold) -> None:
        self._tell(warning)

    def close(self) -> None:
        """Nothing more will be told."""
        self._closed.set()
        self._changed.set()

    async def follow(self, pause: float = 0) -> AsyncGenerator[list[Told], None]:
        """All that was told, then what is told from now on, until the end.

        After each time nothing is given for a `pause` (seconds), unless it is the end: a build tells much in a moment.
        """
        position = 0
        while True:
            if position < len(self.told):
                new = self.told[position:]
                position += len(new)
                yield new
                if pause and not self._closed.is_set():
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(pause):
                            await self._closed.wait()
            elif self._closed.is_set():
                return
            else:
                self._changed.clear()
                await self._changed.wait()

    def _tell(self, told: Told) -> None:
        if not self._closed.is_set():
            self.told.append(told)
            self._changed.set()
