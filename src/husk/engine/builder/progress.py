"""What a build tells while it goes on."""

from typing import Protocol

from msgspec import Struct

from husk.engine.builder.graph import Vertex


class Status(Struct, frozen=True, kw_only=True):
    """A part of a vertex that counts: a layer that is fetched, a context that is sent."""

    id: str
    current: int = 0
    total: int = 0
    done: bool = False


class Progress(Protocol):
    """Who watches one build. Each vertex is told in this order: started, then logs and statuses, then ended, once."""

    def started(self, vertex: Vertex) -> None: ...

    def log(self, vertex: Vertex, data: bytes, *, stderr: bool) -> None: ...

    def status(self, vertex: Vertex, status: Status) -> None: ...

    def ended(self, vertex: Vertex, *, cached: bool = False, error: str = "", cancelled: bool = False) -> None: ...
