"""Questions of tests about the addresses on networks that hosts share."""

from collections.abc import Iterator

from husk.engine.networks.sharing import Place
from husk.swarm.network.allocator import OverlayAllocator


def every_place(shared: OverlayAllocator) -> Iterator[Place]:
    for places in shared.places.values():
        yield from places.values()
