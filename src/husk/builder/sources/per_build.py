"""The facts that a build has found out about the world, which stay true for it: a branch that moves meanwhile, or a
file of the web that changes, does not give one build two contexts. A client's session stands for its build."""

from typing import Generic, TypeVar

from husk.builder.solver.sessions import Session

_MOST = 1000

T = TypeVar("T")


class PerBuild(Generic[T]):
    """Answers by session and question; the oldest ones are forgotten."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], T] = {}

    def get(self, session: Session | None, question: str) -> T | None:
        return self._known.get((session.id, question)) if session else None

    def keep(self, session: Session | None, question: str, answer: T) -> None:
        if session:
            self._known[session.id, question] = answer
            while len(self._known) > _MOST:
                del self._known[next(iter(self._known))]
