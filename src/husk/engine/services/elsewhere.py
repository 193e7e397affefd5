"""What stands in place of a log that lies on another node, where nobody can fetch it from: a line that says so."""

from collections.abc import AsyncIterator
from typing import TypeVar

from husk.engine.logs.read import Form
from husk.engine.logs.records import Lines, LogQuery
from husk.engine.model.clock import now_ns, rfc3339
from husk.engine.services.model import Task

T = TypeVar("T")


def told(task: Task, host: str) -> str:
    """In one line. Pure."""
    container = task.status.container_id[:12]
    return f"husk: the log of this task is on {host} alone: run docker logs {container} on that host"


async def note(task: Task, host: str, query: LogQuery, form: Form[T]) -> AsyncIterator[T]:
    """As a line of the task's own, on its standard error."""
    if query.stderr:
        times = [rfc3339(now_ns()).encode()] if form.needs_times else None
        yield form.encode(Lines([b"stderr F"], [told(task, host).encode()], times))
