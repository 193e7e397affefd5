"""The entitlements of steps: what they may have beyond what every step has, by BuildKit's names. Pure.

The daemon's configuration says what any build may have (`check_allowed`), the user of the client what this one may
(`check_granted`). The grant goes with a build to everything that is done for it, builds within it included. It is
looked at before anything is made or found for the build, and again where a process is run: whatever way leads there.
"""

from collections.abc import Collection, Iterator

from husk.builder.graph.graph import Graph
from husk.builder.graph.operations import Body, Exec
from husk.errors import Forbidden

HOST_NETWORK, INSECURE = "network.host", "security.insecure"


def check_allowed(body: Body, allowed: Collection[str]) -> None:
    """Forbidden where a step asks for more than this daemon gives to any."""
    for name in _asked(body):
        if name not in allowed:
            raise Forbidden(f"granting entitlement {name} is not allowed by build daemon configuration")


def check_granted(body: Body, granted: Collection[str]) -> None:
    """Forbidden where a step asks for what the user of the client did not allow."""
    for name in _asked(body):
        if name not in granted:
            raise Forbidden(f"{name} is not allowed")


def check_graph(graph: Graph, granted: Collection[str]) -> None:
    """The same for all steps of a build."""
    for vertex in graph:
        check_granted(vertex.operation.body, granted)


def _asked(body: Body) -> Iterator[str]:
    if isinstance(body, Exec):
        if body.insecure:
            yield INSECURE
        if body.network == "host":
            yield HOST_NETWORK
