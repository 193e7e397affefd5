"""How much work does something do? Counted, not timed, so that a slow machine says the same."""

import sys
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
