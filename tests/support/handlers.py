"""The cluster port without a wire: what is registered with it is called."""

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

from husk.swarm.port.peers import Peer
from husk.swarm.port.server import ClusterPort


class CalledPort:
    """Keeps handlers by their methods."""

    def __init__(self) -> None:
        self._handlers: dict[str, Callable[[Peer, Any], Awaitable[Any]]] = {}

    def register(self, method: str, handler: Callable[[Peer, Any], Awaitable[Any]], *, access: str) -> None:
        self._handlers[method] = handler

    def register_unary(
        self, method: str, request: object, handler: Callable[[Peer, Any], Awaitable[Any]], *, access: str
    ) -> None:
        self._handlers[method] = handler

    async def call(self, method: str, node: str, request: object) -> object:
        """As this node does."""
        return await self._handlers[method](cast(Peer, SimpleNamespace(node=node)), request)


def port_of(handlers: Any) -> CalledPort:
    """Return a port that these have registered with."""
    port = CalledPort()
    handlers.register(cast(ClusterPort, port))
    return port
