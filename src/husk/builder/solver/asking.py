"""The asker of work for a build that is no operation of a graph, and the vertex that shows this work to clients."""

import secrets
from collections.abc import Collection, Mapping

from msgspec import Struct

from husk.builder.graph.graph import Vertex
from husk.builder.graph.operations import Operation, Source
from husk.builder.graph.progress import Progress, Status
from husk.builder.solver.interfaces import Elsewhere
from husk.builder.solver.refs import Ref
from husk.builder.solver.sessions import Session
from husk.builder.solver.source_policy import FREE, SourcePolicy
from husk.errors import HuskError


class Asker(Struct, frozen=True):
    """The client of a build, as frontends and exporters know it."""

    progress: Progress
    session: Session | None = None
    inputs: Mapping[str, Ref] = {}
    elsewhere: Elsewhere | None = None
    granted: Collection[str] = ()  # what its steps may ask for
    policy: SourcePolicy = FREE  # which sources it may have


class ShownWork:
    """Work that is no operation of a graph, as a vertex of its own in the progress of a build."""

    def __init__(self, asker: Asker, name: str) -> None:
        self.session = asker.session
        self._progress = asker.progress
        digest = f"sha256:{secrets.token_hex(32)}"
        self._vertex = Vertex(digest=digest, operation=Operation(Source("internal://")), name=name)

    def __enter__(self) -> "ShownWork":
        self._progress.started(self._vertex)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        if error is None:
            self._progress.ended(self._vertex)
        elif isinstance(error, HuskError):
            self._progress.ended(self._vertex, error=error.message)
        else:
            self._progress.ended(self._vertex, cancelled=True)

    def log(self, data: bytes, *, stderr: bool = False) -> None:
        self._progress.log(self._vertex, data, stderr=stderr)

    def status(self, status: Status) -> None:
        self._progress.status(self._vertex, status)
