"""A result that is made when somebody needs it: what a frontend gives back, and what a client may look into."""

import asyncio
from collections.abc import Collection

from husk.aio.tasks import Tasks
from husk.builder.graph.graph import Graph
from husk.builder.graph.operations import Edge
from husk.builder.graph.progress import Progress
from husk.builder.solver.interfaces import Elsewhere
from husk.builder.solver.sessions import Session
from husk.builder.solver.solver import BuildRun, Solver
from husk.builder.solver.source_policy import FREE, SourcePolicy


class Ref:
    """An edge of a graph, for one client. An edge that is None is a file system with nothing in it."""

    def __init__(
        self,
        solver: Solver,
        graph: Graph,
        edge: Edge | None,
        progress: Progress,
        session: Session | None = None,
        elsewhere: Elsewhere | None = None,
        granted: Collection[str] = (),
        policy: SourcePolicy = FREE,
    ) -> None:
        """`granted` is what its steps may ask for, `policy` says which sources it may have."""
        self.graph = graph
        self.edge = edge
        self.to_layers = False  # an image is going to be made of it
        self._solver = solver
        self._progress = progress
        self._session = session
        self._elsewhere = elsewhere
        self._granted = granted
        self._policy = policy
        self._tasks = Tasks()
        self._solving: asyncio.Task[BuildRun] | None = None

    async def stack(self) -> str:
        """The file system, which stays until the ref is closed. Who asks first has it made."""
        build = await self.build()
        if build is None or self.edge is None:
            return ""
        assert build.record
        return build.record.outputs[self.edge.output]

    async def build(self) -> BuildRun | None:
        """Solve the ref, only once, and return its build with all that is known of it; None for an empty ref."""
        if self.edge is None:
            return None
        if self._solving is None:
            who = (self._progress, self._session, self._elsewhere, self._granted, self._policy)
            solving = self._solver.solve(self.graph, self.edge, *who, to_layers=self.to_layers)
            self._solving = self._tasks.spawn(solving, "solve a ref", awaited=True)
        build = await asyncio.shield(self._solving)
        self.graph = build.graph  # with the sources that it was made of
        return build

    async def close(self) -> None:
        """Give up what is not made yet, and let go of what is."""
        await self._tasks.cancel_all()
        solving, self._solving = self._solving, None
        if solving and not solving.cancelled() and not solving.exception():
            await solving.result().close()
