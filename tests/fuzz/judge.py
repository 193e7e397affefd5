"""The judge of inputs: each is read or refused in the words of its reader, in 100 ms, without much memory.

Nothing else may come of it: no other exception, no file, no thread.
"""

import contextlib
import gc
import random
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from tests.fuzz import mutate

# Of processor time, for one input that is read on the event loop.
LIMIT = 0.1
# Bytes that an input of 64 KiB may become.
MEMORY = 64 << 20
# How often memory is measured, which makes everything slow.
_MEASURED = 50

Mutator = Callable[[random.Random, Sequence[bytes]], bytes]


class Target(msgspec.Struct, frozen=True):
    """A door that foreign bytes come through. `refusals` are what it may raise."""

    name: str
    read: Callable[[bytes], Any]
    examples: list[bytes]
    refusals: tuple[type[Exception], ...]
    mutator: Mutator = mutate.mutated
    # Inputs that were not read as they should be, once.
    known: list[bytes] = []
    # Seconds of processor time for one input: more for what a worker reads, for whom nobody waits.
    limit: float = LIMIT


class Wrong(AssertionError):
    """An input that was not read as it should be; its text has the bytes, for a test that keeps them."""

    def __init__(self, target: Target, data: bytes, why: str) -> None:
        shown = repr(data) if len(data) <= 4000 else f"{data[:2000]!r} + … + {data[-500:]!r} ({len(data)} bytes)"
        super().__init__(f"{target.name}: {why}\n{shown}")


def judge(target: Target, data: bytes, *, measured: bool = False) -> None:
    """Raise Wrong if anything but reading or refusing comes of it."""
    if measured:
        tracemalloc.start()
    spent = time.thread_time()
    try:
        target.read(data)
    except target.refusals:
        pass
    except Exception as error:
        raise Wrong(target, data, f"{type(error).__name__}: {error}") from error
    finally:
        spent = time.thread_time() - spent
        peak = tracemalloc.get_traced_memory()[1] if measured else 0
        if measured:
            tracemalloc.stop()
    if peak > MEMORY:
        raise Wrong(target, data, f"it took {peak >> 20} MiB")
    if spent > target.limit and not measured:
        # A collection of garbage, or the first use of a module, may have come in between.
        gc.collect()
        again = min(_time_of(target, data) for _ in range(3))
        if again > target.limit:
            raise Wrong(target, data, f"it took {again * 1000:.0f} ms")


def _time_of(target: Target, data: bytes) -> float:
    begun = time.thread_time()
    with contextlib.suppress(*target.refusals):
        target.read(data)
    return time.thread_time() - begun


def inputs(target: Target, chance: random.Random) -> Iterable[bytes]:
    """Yield the inputs that once went wrong, the examples as they are, then their neighbours, without end."""
    yield from target.known
    yield from target.examples
    while True:
        yield target.mutator(chance, target.examples)


def fuzz(target: Target, chance: random.Random, seconds: float) -> int:
    """Judge inputs for so long; how many they were."""
    for example in target.examples:
        target.read(example)  # an example that is refused leads nowhere
    threads = threading.active_count()
    end = time.monotonic() + seconds
    count = 0
    for count, data in enumerate(inputs(target, chance), 1):
        judge(target, data, measured=count % _MEASURED == 0)
        if count > len(target.examples) + len(target.known) and time.monotonic() >= end:
            break
    assert threading.active_count() == threads, f"{target.name} left threads"
    return count
