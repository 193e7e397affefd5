"""Watchers of the engine's work: none until metrics or traces are asked for, and until then it costs nothing.

with watch.action("pull", image="busybox"):     # it takes a while, and may fail
    ...
watch.count("build-step", outcome="cached")     # it has happened

For which request it works, the log says in any case: `request_id()`.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Protocol

from msgspec import Struct

_NOTHING = nullcontext()


class Serving(Struct, gc=False):
    """A request while it is served. What it leaves behind, a task that lives on, works for nobody any more."""

    id: str
    over: bool = False


# Tasks get it with the context that they begin in, threads by `asyncio.to_thread` and `husk.aio.threads`.
serving: ContextVar[Serving | None] = ContextVar("serving", default=None)


def request_id() -> str:
    """The id of the request that is served here and now; empty where there is none."""
    found = serving.get()
    return "" if found is None or found.over else found.id


class Watcher(Protocol):
    """A watcher that is told. It takes no time and never raises, but for what goes wrong inside of an action."""

    def action(self, name: str, facts: dict[str, str]) -> AbstractContextManager[None]: ...

    def count(self, name: str, facts: dict[str, str]) -> None: ...


class Watch:
    """The place where parts of the engine tell of themselves, and the watchers who hear of it."""

    __slots__ = ("watchers",)

    def __init__(self) -> None:
        self.watchers: tuple[Watcher, ...] = ()

    def action(self, name: str, **facts: str) -> AbstractContextManager[None]:
        return self._all(name, facts) if self.watchers else _NOTHING

    def count(self, name: str, **facts: str) -> None:
        for watcher in self.watchers:
            watcher.count(name, facts)

    @contextmanager
    def _all(self, name: str, facts: dict[str, str]) -> Iterator[None]:
        with ExitStack() as stack:
            for watcher in self.watchers:
                stack.enter_context(watcher.action(name, facts))
            yield
