"""Twins without `await`: a class with the same methods for each class of the client, whose calls wait for their end.

What a method gives decides what its twin gives: the result of a coroutine, an iterator for one that is asynchronous, a
`with` block for an `async with`, and the twin of a thing that has one. All of it happens in the thread of the engine.
"""

import asyncio
import functools
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar

from husk.aio.loop_thread import ThreadBound
from husk.errors import Unavailable

T = TypeVar("T")

# The classes that have a twin, and the twins.
_TWINS: dict[type, type["Twin"]] = {}
_END: Any = object()
_NOTHING: Mapping[str, str] = {}


class Bound:
    """The thread that a client lives in."""

    def __init__(self, kept: ThreadBound[Any]) -> None:
        self.kept = kept

    def run(self, work: Callable[[], Any]) -> Any:
        """Call `work` in the thread and wait for the end of what it begins. Whoever interrupts it has it cancelled."""
        if threading.current_thread() is self.thread:
            raise RuntimeError("a call without await cannot wait for its own thread")

        async def worked() -> Any:
            found = work()
            return await found if inspect.iscoroutine(found) else found

        call = self.kept.submit(worked())
        try:
            return call.result()
        except BaseException:
            call.cancel()  # ctrl-C
            raise

    @property
    def thread(self) -> threading.Thread:
        return self.kept.thread


class Twin:
    """Something of an engine, for programs without an event loop."""

    _of: type

    def __init__(self, bound: Bound, it: Any) -> None:
        self._bound = bound
        self._it = it

    def __getattr__(self, name: str) -> Any:
        """The attributes that a thing gets when it is made."""
        if name.startswith("_"):
            raise AttributeError(name)
        return wrapped(self._bound, getattr(self._it, name))

    def __dir__(self) -> list[str]:
        return sorted({*(name for name in dir(type(self)) if not name.startswith("_")), *_public(self._it)})

    def __repr__(self) -> str:
        return repr(self._it)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Twin) and bool(self._it == other._it)

    def __hash__(self) -> int:
        return hash(self._it)


def twin_of(of: type, *, without: tuple[str, ...] = (), awaited: Mapping[str, str] = _NOTHING) -> Any:
    """Make the twin of a class: `without` some of its methods, and with some whose result is `awaited` at once, which
    are there by another name as they are."""
    members: dict[str, Any] = {"_of": of, "_twin_of": of, "__doc__": of.__doc__, "__module__": "husk.library.sync"}
    for name in dir(of):
        if name.startswith("_") or name in without:
            continue
        found = inspect.getattr_static(of, name)
        if inspect.isfunction(found):
            members[name] = _method(found, name in awaited)
            if name in awaited:
                members[awaited[name]] = _method(found, False)
        elif isinstance(found, property | functools.cached_property):
            members[name] = property(_getter(name), doc=found.__doc__)
    if hasattr(of, "__aiter__"):
        members["__iter__"] = _iterated
    if hasattr(of, "__await__"):
        members["result"] = _awaited
    if hasattr(of, "__aenter__"):
        members["__enter__"], members["__exit__"] = _entered, _left
    for name in ("_repr_html_", "_columns"):
        if hasattr(of, name):
            members[name] = _shown(name)
    made = _TWINS[of] = type(f"Sync{of.__name__}", (Twin,), members)
    return made


def know(of: type, twin: type[Twin]) -> None:
    """Take another class for the twin of a class: one with more methods."""
    _TWINS[of] = twin


def wrapped(bound: Bound, value: Any) -> Any:
    """Give a value as a program without an event loop can use it."""
    for kind in type(value).__mro__:
        if kind in _TWINS:
            return _TWINS[kind](bound, value)
    if isinstance(value, list):
        return type(value)(wrapped(bound, each) for each in value)
    if hasattr(value, "__anext__"):
        return _iterator(bound, value)
    if hasattr(value, "__aenter__"):
        return Block(bound, value)
    if inspect.isfunction(value) or inspect.ismethod(value):
        return lambda *given, **named: wrapped(bound, bound.run(lambda: value(*given, **named)))
    return value


class Block:
    """A `with` block for an `async with`."""

    def __init__(self, bound: Bound, context: Any) -> None:
        self._bound = bound
        self._context = context

    def __enter__(self) -> Any:
        return wrapped(self._bound, self._bound.run(self._context.__aenter__))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        found: bool | None = self._bound.run(lambda: self._context.__aexit__(kind, error, trace))
        return found


def _method(of: Any, awaits: bool) -> Any:
    @functools.wraps(of)
    def method(self: Twin, *given: Any, **named: Any) -> Any:
        values = [_unwrapped(each) for each in given]
        options = {name: _unwrapped(value) for name, value in named.items()}
        found = self._bound.run(lambda: of(self._it, *values, **options))
        if awaits:
            found = self._bound.run(lambda: _awaiting(found))
        return wrapped(self._bound, found)

    return method


def _getter(name: str) -> Callable[[Twin], Any]:
    return lambda self: wrapped(self._bound, getattr(self._it, name))


def _shown(name: str) -> Callable[[Twin], Any]:
    """Give what notebooks ask for, which needs no engine."""
    return lambda self: getattr(self._it, name)()


async def _awaiting(value: Any) -> Any:
    return await value


def _awaited(self: Twin) -> Any:
    """Wait for its end, and give what it gives."""
    return wrapped(self._bound, self._bound.run(lambda: _awaiting(self._it)))


def _iterated(self: Twin) -> Iterator[Any]:
    return _iterator(self._bound, aiter(self._it))


def _entered(self: Twin) -> Twin:
    self._bound.run(self._it.__aenter__)
    return self


def _left(
    self: Twin, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
) -> None:
    self._bound.run(lambda: self._it.__aexit__(kind, error, trace))


def _iterator(bound: Bound, pieces: AsyncIterator[Any]) -> Iterator[Any]:
    async def following() -> Any:
        return await anext(pieces, _END)

    async def closed() -> None:
        if hasattr(pieces, "aclose"):
            await pieces.aclose()

    try:
        while (value := bound.run(following)) is not _END:
            yield wrapped(bound, value)
    finally:
        with suppress(Unavailable):  # the engine is closed, and so is this
            if threading.current_thread() is bound.thread:
                bound.kept.submit(closed())  # collected in the engine's own thread, which cannot wait for itself
            else:
                bound.run(closed)


def _unwrapped(value: Any) -> Any:
    """Give a value as the client takes it: its own things, and iterators that do not stop the loop."""
    if isinstance(value, Twin):
        return value._it
    if isinstance(value, list | tuple):
        return type(value)(map(_unwrapped, value)) if any(isinstance(each, Twin) for each in value) else value
    if isinstance(value, Iterator) and not hasattr(value, "read"):
        return _stepped(value)
    return value


async def _stepped(pieces: Iterator[T]) -> AsyncIterator[T]:
    while (piece := await asyncio.to_thread(next, pieces, _END)) is not _END:
        yield piece


def _public(it: Any) -> Iterator[str]:
    return (name for name in vars(it) if not name.startswith("_")) if hasattr(it, "__dict__") else iter(())
