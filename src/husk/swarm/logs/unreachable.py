"""The line in place of logs on another node that cannot be read now: it says so."""

from collections.abc import AsyncIterator, Sequence
from typing import TypeVar

from husk.engine.logs.read import Form
from husk.engine.logs.records import Columns, LogQuery
from husk.engine.model.clock import now_ns, rfc3339
from husk.swarm.model.services import Task

T = TypeVar("T")


def told(tasks: Sequence[Task], host: str, reason: str) -> str:
    """In one line. Pure."""
    what = "the log of this task" if len(tasks) == 1 else f"the logs of {len(tasks)} tasks"
    return f"husk: {what} cannot be read from {host or 'its node'} now, or not to the end: {reason}"


async def note(tasks: Sequence[Task], host: str, reason: str, query: LogQuery, form: Form[T]) -> AsyncIterator[T]:
    """As a line of the first task's own, on its standard error."""
    if query.stderr:
        times = [rfc3339(now_ns()).encode()] if form.needs_times else None
        yield form.encode(Columns([b"stderr F"], [told(tasks, host, reason).encode()], times))
