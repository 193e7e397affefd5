"""A thread for one piece of work, which ends with it: for what changes the thread itself, such as its namespaces."""

import threading
from collections.abc import Callable
from typing import TypeVar

from husk.errors import Unavailable

T = TypeVar("T")


def begin(thread: threading.Thread) -> None:
    """Start it. Unavailable where the host lets no thread be started: Python has no error of its own for that."""
    try:
        thread.start()
    except (RuntimeError, MemoryError) as error:
        raise Unavailable(f"this host lets no thread be started now: {error}") from error


def in_lone_thread(work: Callable[[], T], name: str) -> T:
    """Call `work` in a thread of its own and wait for it: what it gives or raises."""
    results: list[T] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, name=name)
    begin(thread)
    thread.join()
    if failures:
        raise failures[0]
    return results[0]
