"""The remains of steps that have failed, for clients who want to look around there (`docker buildx debug`): a file
system of its own for each, until the build ends that it was made for."""

from collections.abc import Awaitable, Callable, Sequence

from husk.builder.solver.sessions import Session

# Sessions of which something is kept; a build that has ended takes its remains with it.
_MOST = 64


class Remains:
    def __init__(self, forget: Callable[[str], Awaitable[None]], most: int = _MOST) -> None:
        """`forget` removes a stack that nobody needs any more; of `most` sessions at most something is kept."""
        self._most = most
        self._forget = forget
        self._kept: dict[str, list[str]] = {}

    async def keep(self, session: Session, outputs: Sequence[str]) -> None:
        self._kept.setdefault(session.id, []).extend(stack for stack in outputs if stack)
        while len(self._kept) > self._most:
            await self._clear(next(iter(self._kept)))

    async def clear(self, session: Session | None) -> None:
        """The build of this client has ended."""
        if session is not None:
            await self._clear(session.id)

    async def _clear(self, id: str) -> None:
        for stack in self._kept.pop(id, []):
            await self._forget(stack)
