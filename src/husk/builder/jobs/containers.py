"""The containers of one build that a client or a frontend runs processes in, by ids that it has chosen.

They are there until they are released, or the build ends: then all that runs in them ends, too.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack

from husk.aio.tasks import Tasks
from husk.builder.graph.operations import Exec
from husk.builder.solver.sessions import Session
from husk.builder.steps.held import StepContainer
from husk.errors import Conflict, InvalidParameter, NotFound, NotImplementedYet
from husk.registry.manifest import Platform

MOST = 32

Hold = Callable[
    [Exec, Sequence[str], Session | None, Platform | None, Collection[str]],
    AbstractAsyncContextManager[StepContainer],
]


class JobContainers:
    def __init__(
        self, hold: Hold | None, session: Session | None, granted: Collection[str] = (), most: int = MOST
    ) -> None:
        """`hold` is what makes them: `steps.run.Steps.held`. `granted` is what the build's user allows."""
        self._granted = granted
        self._most = most
        self._hold = hold
        self._session = session
        self._held: dict[str, tuple[StepContainer, AsyncExitStack]] = {}
        self._changing = asyncio.Lock()
        self._tasks = Tasks()
        self._closed = False

    async def add(self, id: str, body: Exec, inputs: Sequence[str], platform: Platform | None) -> None:
        """Mount what the body says. Nothing runs yet."""
        if self._hold is None:
            raise NotImplementedYet("processes of a frontend cannot be run here")
        if not id:
            raise InvalidParameter("a container of a build needs an id")
        async with self._changing:
            if self._closed:
                raise Conflict("the build has ended")
            if id in self._held:
                raise Conflict(f"container {id} already exists")
            if len(self._held) >= self._most:
                raise InvalidParameter(f"a build has {self._most} containers at most")
            async with AsyncExitStack() as stack:
                held = await stack.enter_async_context(self._hold(body, inputs, self._session, platform, self._granted))
                self._held[id] = held, stack.pop_all()

    def get(self, id: str) -> StepContainer:
        if id not in self._held:
            raise NotFound(f'container "{id}" previously released or not created')
        return self._held[id][0]

    async def release(self, id: str) -> None:
        if id not in self._held:
            raise NotFound(f'container "{id}" previously released or not created')
        _, stack = self._held.pop(id)
        await self._tasks.to_its_end(stack.aclose(), "release a container of a build")

    async def close(self) -> None:
        """Release all. There will be no others."""
        self._closed = True
        async with self._changing:
            for id in list(self._held):
                await self.release(id)
