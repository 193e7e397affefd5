"""Releases that work together in one swarm: those whose versions of the cluster protocol are neighbours. Pure.

Both sides tell theirs when a node joins, and a worker whenever its daemon starts. Within that distance, fields that one
side does not know are ignored, and calls that it does not know are refused one by one.
"""

from typing import NamedTuple

from husk.errors import Conflict
from husk.version import CLUSTER_PROTOCOL, __version__

# How far apart two may be. A side that tells no version is of a release that had none yet, which spoke the first.
NEIGHBOURS = 1
FIRST = 1


class ProtocolVersion(NamedTuple):
    """The version of the protocol that one side speaks, and its release."""

    version: int
    release: str


OWN = ProtocolVersion(CLUSTER_PROTOCOL, __version__)


def check(node: ProtocolVersion, manager: ProtocolVersion) -> None:
    """Conflict where a node and a manager are too far apart to understand each other."""
    theirs, ours = node.version or FIRST, manager.version or FIRST
    if abs(theirs - ours) > NEIGHBOURS:
        raise Conflict(
            f"this node (Husk {_release(node)}) speaks version {theirs} of the cluster protocol and the manager (Husk "
            f"{_release(manager)}) version {ours}, which are too far apart: upgrade the older one first, through the "
            "releases between"
        )


def _release(side: ProtocolVersion) -> str:
    return side.release[:64] or "0.1"
