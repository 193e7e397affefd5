"""Reading of logs that this manager cannot reach itself: through managers that may, in the order of asking them."""

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing

from husk.engine.containers.service import Containers
from husk.swarm.logs.broker import LogBroker
from husk.swarm.logs.source import LogSource
from husk.swarm.membership.certificates import Certificates
from husk.swarm.membership.cluster import Cluster
from husk.swarm.model.node import MANAGER_PORT, Node
from husk.swarm.model.services import Task
from husk.swarm.port import logs
from husk.swarm.port.assignment_messages import encoded
from husk.swarm.port.log_messages import Asked
from husk.text.endpoints import Endpoint, read_endpoint


def open_broker(
    nodes: Mapping[str, Node],
    cluster: Cluster,
    certificates: Certificates,
    containers: Containers,
    find: Callable[[str], Task | None],
) -> LogBroker:
    """`find` gives a task of this node, and of no other."""

    async def ask(endpoint: Endpoint, asked: Asked) -> AsyncGenerator[bytes]:
        async with aclosing(logs.read(endpoint, await certificates.identity(), encoded(asked))) as pieces:
            async for piece in pieces:
                yield piece

    def others(asked: Asked) -> Iterator[AsyncGenerator[bytes]]:
        for node in askable(asked.node, nodes, cluster.node_id):
            assert node.manager is not None
            yield ask(read_endpoint(node.manager.addr, MANAGER_PORT), asked)

    return LogBroker(LogSource(containers, find).read, lambda: cluster.node_id, others)


def askable(node_id: str, nodes: Mapping[str, Node], own_id: str) -> list[Node]:
    """The managers that may reach a node: itself, if it is one, or else all others that live. Pure."""
    node = nodes.get(node_id)
    if node is not None and node.manager is not None:
        return [node]
    return [
        other
        for other in nodes.values()
        if other.manager is not None and other.id != own_id and other.status.state != "down"
    ]
