"""By what a swarm counts time: a clock that never steps, and times of other clocks brought to it.

What is planned by times (when a task is started again, how an update goes on) is so many seconds after something
happened. The host's clock is set now and then, by hours if need be, and one back would delay all of that as long. So a
daemon takes the time once, when it starts, and from then on counts by the kernel's clock since the boot (`Clock.now`);
what people read is the host's clock (`Clock.stamp`). An order is told by numbers and never by times.

A manager whose clock is minutes ahead would delay what others do by minutes, one whose clock is behind would not wait
at all. So what another manager tells has happened when we hear of it, and nothing that we find, of others or of a
daemon before this one, was after now. Those functions are pure.
"""

import time

import msgspec

from husk.engine.model.clock import now_ns, parse_rfc3339, rfc3339
from husk.swarm.model.node import Node
from husk.swarm.model.services import SECOND, Service, Task


class Clock:
    """That of this host, in its four forms. Every part of a swarm is given one; a simulation has its own."""

    def __init__(self) -> None:
        self._ahead = now_ns() - _since_boot()

    def now(self) -> int:
        """In nanoseconds since the epoch, as far as was known when the clock was made; it never goes back."""
        return self._ahead + _since_boot()

    def awake(self) -> int:
        """In nanoseconds, for how long somebody has not been heard: while this host sleeps it hears nobody."""
        return time.monotonic_ns()

    def seconds(self) -> float:
        """The host's clock, in seconds since the epoch: certificates are good by that. It may be set at any time."""
        return now_ns() / SECOND

    def stamp(self) -> str:
        """The host's clock as people are told it."""
        return rfc3339(now_ns())


def _since_boot() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


CLOCK = Clock()
"""The one of this process: whatever is compared was counted by one clock."""


def task_by_ours(told: Task, known: Task | None, now: int) -> Task:
    """`told` is how another manager wrote a task, or a daemon before this one; `known` how it was here before."""
    status = told.status
    if known is None:
        created, since, started = (min(time, now) for time in (told.created_ns, status.since_ns, status.started_ns))
    else:
        created, since, started = known.created_ns, known.status.since_ns, known.status.started_ns
        if known.status.state != status.state:
            since, started = now, started or (now if status.started_ns else 0)
    status = msgspec.structs.replace(status, since_ns=since, started_ns=started)
    restarts = tuple(min(time, now) for time in told.restarts)
    return msgspec.structs.replace(told, created_ns=created, status=status, restarts=restarts)


def service_by_ours(told: Service, known: Service | None, now: int) -> Service:
    """The same for a service and its update."""
    status = told.update_status
    if status is None:
        return told
    begun = began(told)
    if known is not None and known.update_status is not None and known.update_status.started_at == status.started_at:
        begun = began(known)
    elif known is not None:
        begun = now
    return msgspec.structs.replace(told, update_began_ns=min(begun, now))


def began(service: Service) -> int:
    """Return the time when the service's update began; 0 where there is none."""
    status = service.update_status
    if status is None:
        return 0
    return service.update_began_ns or parse_rfc3339(status.started_at or rfc3339(0))


def node_by_ours(told: Node, known: Node | None, now: int) -> Node:
    """The same for a node and its state."""
    since = min(told.status.since_ns, now)
    if known is not None:
        since = known.status.since_ns if known.status.state == told.status.state else now
    return msgspec.structs.replace(told, status=msgspec.structs.replace(told.status, since_ns=since))
