"""A part that is made when it is first needed: until then it costs nothing, neither memory nor time at the start.

Its modules are loaded in a thread, for to load a hundred of them takes longer than anybody may hold the event loop:

    await load("husk.builder.opening")
    from husk.builder.opening import open_builder

A package that most of a program does without is a door of its own: its modules are loaded when one is first used.

    __getattr__ = late(__name__, "authority")
"""

import asyncio
import importlib
from collections.abc import Callable, Coroutine
from types import ModuleType
from typing import Generic, TypeVar

from husk.aio.tasks import Tasks

T = TypeVar("T")


_loaded: set[str] = set()


async def load(*modules: str) -> None:
    """Load these modules; whoever imports from them after it gets what is there. ImportError as always."""
    for name in modules:
        if name not in _loaded:
            await asyncio.to_thread(importlib.import_module, name)
            _loaded.add(name)


def late(package: str, *modules: str) -> Callable[[str], ModuleType]:
    """Return the `__getattr__` of a package which loads these modules of it when they are first used."""

    def attribute(name: str) -> ModuleType:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return importlib.import_module(f"{package}.{name}")

    return attribute


class Once(Generic[T]):
    def __init__(self, make: Callable[[], Coroutine[object, object, T]], name: str) -> None:
        self._make = make
        self._name = name
        self._tasks = Tasks()
        self._made: asyncio.Task[T] | None = None
        self._change: Callable[[T], None] | None = None

    async def get(self) -> T:
        """Return what is made once; who comes meanwhile waits for it. If it fails, the next caller tries again."""
        if self._made is None:
            self._made = self._tasks.spawn(self._make_changed(), self._name, awaited=True)
        try:
            return await asyncio.shield(self._made)
        except BaseException:
            if self._made is not None and self._made.done() and (self._made.cancelled() or self._made.exception()):
                self._made = None
            raise

    @property
    def made(self) -> T | None:
        """It, if it has been made."""
        made = self._made
        return made.result() if made and made.done() and not made.cancelled() and not made.exception() else None

    def change(self, change: Callable[[T], None]) -> None:
        """Change what was made, or what will be made; only the last change counts."""
        self._change = change
        if (made := self.made) is not None:
            change(made)

    async def _make_changed(self) -> T:
        made = await self._make()
        if self._change:
            self._change(made)
        return made

    async def close(self) -> T | None:
        """Nobody asks any more: what was made, for whoever closes that."""
        await self._tasks.join()
        made, self._made = self.made, None
        return made
