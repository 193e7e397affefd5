"""The progress of a build, told while it goes on."""

import re
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from husk.builder.graph.graph import Vertex


class Status(Struct, frozen=True, kw_only=True):
    """A part of a vertex that counts: a layer that is fetched, a context that is sent."""

    id: str
    current: int = 0
    total: int = 0
    done: bool = False


LONGEST_LOG = 2 << 20
CLIPPED = b"\n[output clipped, log limit 2MiB reached]\n"


class LogLimit:
    """Cuts off what one vertex says when it is too much: a process that writes without end must not fill the memory."""

    def __init__(self) -> None:
        self._lengths: dict[str, int] = {}

    def cut(self, vertex: Vertex, data: bytes) -> bytes:
        """Cut data that a vertex has logged down to what may still be told; the place of the cut is marked."""
        length = self._lengths.get(vertex.digest, 0)
        if length >= LONGEST_LOG:
            return b""
        self._lengths[vertex.digest] = length + len(data)
        if length + len(data) < LONGEST_LOG:
            return data
        return data[: LONGEST_LOG - length] + CLIPPED


class Progress(Protocol):
    """The watcher of one build. Each vertex is told in this order: started, then logs and statuses, then ended, once.

    Of one that has ended well the `outputs` are told: stacks.
    """

    def started(self, vertex: Vertex) -> None: ...

    def log(self, vertex: Vertex, data: bytes, *, stderr: bool) -> None: ...

    def status(self, vertex: Vertex, status: Status) -> None: ...

    def ended(
        self,
        vertex: Vertex,
        *,
        cached: bool = False,
        error: str = "",
        cancelled: bool = False,
        outputs: Sequence[str] = (),
    ) -> None: ...


class Both:
    """Two who watch the same build."""

    def __init__(self, one: Progress, other: Progress) -> None:
        self._all = (one, other)

    def started(self, vertex: Vertex) -> None:
        for each in self._all:
            each.started(vertex)

    def log(self, vertex: Vertex, data: bytes, *, stderr: bool) -> None:
        for each in self._all:
            each.log(vertex, data, stderr=stderr)

    def status(self, vertex: Vertex, status: Status) -> None:
        for each in self._all:
            each.status(vertex, status)

    def ended(
        self,
        vertex: Vertex,
        *,
        cached: bool = False,
        error: str = "",
        cancelled: bool = False,
        outputs: Sequence[str] = (),
    ) -> None:
        for each in self._all:
            each.ended(vertex, cached=cached, error=error, cancelled=cancelled, outputs=outputs)


# `[2/3] RUN make`, `[internal] load metadata for …`
_PLACE = re.compile(r"(\[[^\]]{1,60}\] )?([A-Z]+)\b")


def public_name(vertex: Vertex) -> str:
    """Name a vertex for others than its client: by its place and keyword, or its kind. Commands may hold secrets."""
    found = _PLACE.match(vertex.name)
    return found[0] if found else type(vertex.operation.body).__name__.lower()
