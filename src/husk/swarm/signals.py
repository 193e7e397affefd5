"""Signals: the way of news from a part to those above it, which it does not know.

A part has a signal for what others may want to hear of it, and emits it. Those above subscribe when they are put
together (`husk.swarm.opening`), before anything runs.
"""

from collections.abc import Awaitable, Callable
from typing import Generic, ParamSpec

P = ParamSpec("P")


class Signal(Generic[P]):
    """News that nobody answers."""

    def __init__(self) -> None:
        self._subscribers: list[Callable[P, object]] = []

    def __len__(self) -> int:
        """Count those that hear it."""
        return len(self._subscribers)

    def subscribe(self, subscriber: Callable[P, object]) -> None:
        self._subscribers.append(subscriber)

    def unsubscribe(self, subscriber: Callable[P, object]) -> None:
        self._subscribers.remove(subscriber)

    def emit(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Tell all subscribers, in the order in which they came."""
        for subscriber in self._subscribers:
            subscriber(*args, **kwargs)


class AwaitedSignal(Generic[P]):
    """News whose emitter waits until all subscribers have done what follows from it, and hears what one could not."""

    def __init__(self) -> None:
        self._subscribers: list[Callable[P, Awaitable[object]]] = []

    def subscribe(self, subscriber: Callable[P, Awaitable[object]]) -> None:
        self._subscribers.append(subscriber)

    async def emit(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Await all subscribers, one after the other; raise what one raises."""
        for subscriber in self._subscribers:
            await subscriber(*args, **kwargs)
