"""Times that other managers wrote, brought to this host's own clock, which goes by nobody else's. Pure.

What is planned by times (when a task is started again, how an update goes on) is so many seconds after something
happened. A manager whose clock is minutes ahead would delay that by minutes, one whose clock is behind would not wait
at all. So what another manager tells has happened when we hear of it, and nothing that we find was after now.
"""

import msgspec

from husk.engine.model.clock import parse_rfc3339, rfc3339
from husk.engine.services.model import Service, Task


def task_by_ours(told: Task, known: Task | None, now: int) -> None:
    """`told` is how another manager wrote a task, `known` how it was here before, if it was."""
    status = told.status
    if known is None:
        created, since, started = (min(time, now) for time in (told.created_ns, status.since_ns, status.started_ns))
    else:
        created, since, started = known.created_ns, known.status.since_ns, known.status.started_ns
        if known.status.state != status.state:
            since, started = now, started or (now if status.started_ns else 0)
    told.created_ns = created
    told.status = msgspec.structs.replace(status, since_ns=since, started_ns=started)


def service_by_ours(told: Service, now: int) -> None:
    """An update that another manager began has not begun after now."""
    status = told.update_status
    if status is not None and status.started_at and parse_rfc3339(status.started_at) > now:
        told.update_status = msgspec.structs.replace(status, started_at=rfc3339(now))
