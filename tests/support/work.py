"""The amount of work that something does: counted, not timed, so that a slow machine says the same."""

import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any


def lines_run(do: Callable[[], object]) -> int:
    """Run it; how many lines of Python code it went through, those of what it called included."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        do()
    finally:
        sys.settrace(before)
    return count


def memory_for(do: Callable[[], object]) -> int:
    """Run it; how many bytes more than before were in use at its height. What is copied is seen here."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        do()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
