"""The states of a container, and every transition between them; no I/O.

Two values tell together where a container is. `State`, in its record, is what the store and clients know: Docker's
status with pid, exit code and times. `Life` is what only this daemon's memory holds: the process, or what the last one
left on the host. Both are frozen: a transition makes a new value. The tables stand in the docstring of the package.

A transition that a table does not have is a fault of ours, and raises; what a client may ask and not get is refused
before, in the client's words.
"""

import asyncio
from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from husk.engine.containers.drivers import Supervised
from husk.engine.model.container import Health, State, Status
from husk.errors import SystemFault

Step = Literal["start", "fail", "pause", "thaw", "end", "give up", "remove"]

# What each step leads to, by the status before it.
STEPS: Mapping[Step, Mapping[Status, frozenset[Status]]] = {
    "start": {
        "created": frozenset({"running"}),
        "exited": frozenset({"running"}),
        "restarting": frozenset({"running"}),
    },
    "fail": {
        "created": frozenset({"created", "restarting"}),
        "exited": frozenset({"exited", "restarting"}),
        "restarting": frozenset({"restarting", "exited"}),
    },
    "pause": {"running": frozenset({"paused"})},
    "thaw": {"paused": frozenset({"running"})},
    "end": {
        "running": frozenset({"exited", "restarting"}),
        "paused": frozenset({"exited", "restarting"}),
    },
    "give up": {"restarting": frozenset({"exited"})},
    "remove": {
        "created": frozenset({"removing"}),
        "exited": frozenset({"removing"}),
        "dead": frozenset({"removing"}),
        "removing": frozenset({"removing"}),
    },
}


def _move(before: State, step: Step, status: Status, **fields: object) -> State:
    if status not in STEPS[step].get(before.status, ()):
        raise SystemFault(f'a container cannot go from "{before.status}" to "{status}" by the step "{step}"')
    return replace(before, status=status, **fields)


def started(before: State, at: str, health: Health | None) -> State:
    """Return the state of a container whose process, which has its pid already, begins to run."""
    return _move(before, "start", "running", exit_code=0, error="", oom_killed=False, started_at=at, health=health)


def failed(before: State, exit_code: int, error: str, *, again: bool, cut_off: bool) -> State:
    """Return the state after a start that failed: as before where it was the first, or was `cut_off` with the daemon;
    the wait for the next try where its policy tries `again`."""
    kept = cut_off or before.status == "created"
    status: Status = "restarting" if again else before.status if kept else "exited"
    return _move(before, "fail", status, pid=0, exit_code=exit_code, error=error, oom_killed=False)


def paused(before: State) -> State:
    return _move(before, "pause", "paused")


def thawed(before: State) -> State:
    return _move(before, "thaw", "running")


def ended(before: State, at: str, exit_code: int, error: str, *, oom_killed: bool, again: bool) -> State:
    """Return the state after the end of the process; with `again` the container waits for its next run."""
    status: Status = "restarting" if again else "exited"
    fields = {"pid": 0, "exit_code": exit_code, "error": error, "finished_at": at}
    return _move(before, "end", status, oom_killed=before.oom_killed or oom_killed, **fields)


def given_up(before: State) -> State:
    """Return the state of a container that waited for its next run and gets none."""
    return _move(before, "give up", "exited")


def removing(before: State) -> State:
    return _move(before, "remove", "removing")


# --- what memory holds


class Settled(Struct, frozen=True):
    """No process, and nothing on the host but the container's own files."""


class Unsettled(Struct, frozen=True):
    """No process, and perhaps mounts, networks or a bundle on the host, which a release gives back: a start is under
    way, a release did not reach all, or a former daemon left something."""

    uncleared: bool = False
    """The bundle and the control group were left for later."""


class Uncleared(Struct, frozen=True):
    """No process; the bundle and the control group are still there, to be cleared later."""

    little: bool = False
    """The container's own files are so few that they may go with those."""


class Discarded(Struct, frozen=True):
    """No process, and no file of the container either: its record is about to go."""


class Alive(Struct, frozen=True):
    """A process, which runs, or has ended and waits for that to be recorded."""

    supervised: Supervised
    doomed: bool = False
    """It is ended only to have the container removed."""


Resting: TypeAlias = Settled | Unsettled | Uncleared | Discarded


class Waiting(Struct, frozen=True):
    """No process, and a task that starts the next one in a while."""

    timer: asyncio.Task[None]
    rest: Resting


Life: TypeAlias = Resting | Alive | Waiting

SETTLED, UNSETTLED, DISCARDED = Settled(), Unsettled(), Discarded()


def starting(life: Life) -> Unsettled:
    """Return what there is from now on, while a start takes what the process needs."""
    if isinstance(life, Alive | Waiting) or is_uncleared(life):
        raise SystemFault(f"a container cannot be started that is {type(life).__name__}")
    return UNSETTLED


def begun(life: Life, supervised: Supervised) -> Alive:
    """Return what there is with a process that was made, or that a former daemon has made."""
    if not isinstance(life, Unsettled):
        raise SystemFault(f"a container cannot get a process that is {type(life).__name__}")
    return Alive(supervised)


def settled(life: Life) -> Settled:
    """Return what there is of a container that a former daemon knew, and left nothing of."""
    if life != UNSETTLED:
        raise SystemFault(f"a container cannot be without remains that is {type(life).__name__}")
    return SETTLED


def resting(life: Life) -> Resting:
    """Return what there is without a process: a wait for the next run is given up, a process let go."""
    match life:
        case Waiting(timer=timer, rest=rest):
            if timer is not asyncio.current_task():
                timer.cancel()
            return rest
        case Alive(supervised=supervised):
            supervised.close()
            return UNSETTLED
        case _:
            return life


def released(*, whole: bool, uncleared: bool, little: bool, discarded: bool) -> Resting:
    """Return what a release left: it was `whole` if nothing is left of what a release gives back."""
    if not whole:
        return Unsettled(uncleared)
    if discarded:
        return DISCARDED
    return Uncleared(little) if uncleared else SETTLED


def is_uncleared(life: Life) -> bool:
    return isinstance(life, Uncleared) or (isinstance(life, Unsettled) and life.uncleared)


def cleared(life: Life) -> Life:
    """Return what there is when bundle and control group have gone."""
    match life:
        case Uncleared():
            return SETTLED
        case Unsettled():
            return UNSETTLED
        case _:
            return life


def holds(life: Life) -> bool:
    """Return True if there may be something on the host that a release gives back."""
    return isinstance(life.rest if isinstance(life, Waiting) else life, Alive | Unsettled)


def doomed(life: Life, value: bool) -> Life:
    """Return the same life, with a process that is ended only for the container's removal, or no longer is."""
    return replace(life, doomed=value) if isinstance(life, Alive) else life


def waiting(life: Life, timer: asyncio.Task[None]) -> Waiting:
    """Return the wait for the next run."""
    return Waiting(timer, resting(life))
