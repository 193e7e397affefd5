"""Who looks on while the engine works? Nobody, until metrics or traces are asked for, and until then it costs nothing.

with watch.action("pull", image="busybox"):     # it takes a while, and may fail
    ...
watch.count("build-step", outcome="cached")     # it has happened
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Protocol

_NOTHING = nullcontext()


class Watcher(Protocol):
    """Who is told. It takes no time and never raises, but for what goes wrong inside of an action."""

    def action(self, name: str, facts: dict[str, str]) -> AbstractContextManager[None]: ...

    def count(self, name: str, facts: dict[str, str]) -> None: ...


class Watch:
    """What parts of the engine tell of themselves, and who hears of it."""

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
