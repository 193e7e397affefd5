"""The heartbeats of nodes: one lives that says so every few seconds, and is down when it has missed three times. Pure.

A manager knows what its own connections tell it (`Heartbeats`). What all managers know is in the store: a record
`alive` for each node, under a lease of the manager that hears it, so that it goes when either does (`verdicts`).
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from husk.swarm.model.node import Node, NodeState
from husk.swarm.model.services import SECOND

PERIOD = 5 * SECOND
# What is asked for may be shorter, a lease of etcd cannot.
SHORTEST = SECOND
MISSED = 3
GRACE = PERIOD * MISSED
FAILURE = "heartbeat failure"


def period_of(wanted: int) -> int:
    """Return the time between heartbeats in a swarm set to this (`Dispatcher.HeartbeatPeriod`); 0: the usual time."""
    return max(wanted, SHORTEST) if wanted else PERIOD


def spared_for(period: int) -> int:
    """Return how long a node is not taken for lost after the manager has gone that heard it: it finds another with the
    second heartbeat that nobody answers."""
    return period + 2 * SECOND


class Heartbeats:
    """The nodes that this manager hears, each with the time when it will have missed too often; times are those of a
    clock that only goes on."""

    def __init__(self) -> None:
        # By node: when it has missed too often.
        self._lost: dict[str, int] = {}

    def beat(self, node_id: str, now: int, period: int = PERIOD) -> bool:
        """A node lives. Whether that is news."""
        fresh = node_id not in self._lost
        self._lost[node_id] = now + period * MISSED
        return fresh

    def silent(self, now: int) -> list[str]:
        """Those that have missed too often; they are forgotten until they are heard again."""
        found = [node_id for node_id, lost in self._lost.items() if now >= lost]
        for node_id in found:
            del self._lost[node_id]
        return found

    def next_alarm(self) -> int | None:
        """Return the time when the next node would have missed too often; None if no node is heard."""
        return min(self._lost.values(), default=None)

    def forget(self, node_id: str) -> None:
        self._lost.pop(node_id, None)

    @property
    def known(self) -> Collection[str]:
        return self._lost.keys()


class NodeVerdict(NamedTuple):
    node_id: str
    state: NodeState
    message: str = ""


def verdicts(
    nodes: Iterable[Node],
    alive: Mapping[str, str] | Collection[str],
    watched_for: int,
    grace: int = GRACE,
    spared: Mapping[str, int] | Collection[str] = (),
) -> list[NodeVerdict]:
    """The nodes whose records do not say how they are. `alive` are those that some manager hears, `spared` those that
    may be looking for another manager.

    `watched_for` says how long the leader has known who lives: nobody is down before it had time, `grace`, to say that
    it is not.
    """
    found = []
    for node in nodes:
        if node.id in alive:
            if node.status.state != "ready":
                found.append(NodeVerdict(node.id, "ready"))
        elif node.id in spared:
            continue
        elif node.status.state in ("ready", "disconnected", "unknown") and watched_for >= grace:
            found.append(NodeVerdict(node.id, "down", FAILURE))
    return found
