"""The builder as the engine has it: put together when the first build begins, or somebody asks for the cache.

Builds need much that nothing else does. A daemon that never builds loads none of it.
"""

from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from husk.aio.once import Once, load
from husk.config import Config
from husk.engine.host import Host
from husk.engine.images.service import Images
from husk.engine.images.store import ImageStore
from husk.engine.networks.service import Networks
from husk.runtime.assembly.paths import Paths
from husk.runtime.runtimes import Runtimes
from husk.storage.state.store import StateStore
from husk.storage.workers.nursery import Nursery
from husk.watch import Watch

if TYPE_CHECKING:
    from husk.engine.builder.prune import Item
    from husk.engine.builder.service import Builder
    from husk.registry.client import RegistryClient


class LateBuilder(Once["Builder"]):
    def __init__(self, make: "Callable[[], Coroutine[object, object, Builder]]", state: StateStore) -> None:
        super().__init__(make, "open the builder")
        self._state = state

    async def cache(self) -> "list[Item]":
        """List the cache that builds have kept. Where they have kept nothing, nothing is loaded to say so."""
        from husk.engine.model.build import CACHE_MOUNT, RECORD

        if self.made is None and not any((await self._state.fetch_several((RECORD, CACHE_MOUNT))).values()):
            return []
        return await (await self.get()).items()


def late_builder(
    stack: AsyncExitStack,
    *,
    config: Config,
    state: StateStore,
    store: ImageStore,
    images: Images,
    networks: Networks,
    runtimes: Runtimes,
    host: Host,
    paths: Paths,
    nursery: Nursery,
    registry: "Callable[[], RegistryClient]",
    watch: Watch,
    power_held: bool,
) -> LateBuilder:
    """It is closed with the stack, if it was ever made. Has the power held since the last daemon ran?"""

    async def make() -> "Builder":
        await load("husk.engine.builder.assemble")
        from husk.engine.builder.assemble import open_builder
        from husk.engine.builder.surroundings import Surroundings

        return await open_builder(
            Surroundings(
                config=config,
                state=state,
                store=store,
                images=images,
                networks=networks,
                runtimes=runtimes,
                host=host,
                paths=paths,
                nursery=nursery,
                registry=registry(),
                watch=watch,
                power_held=power_held,
            )
        )

    builder = LateBuilder(make, state)
    stack.push_async_callback(_close, builder)
    return builder


async def _close(builder: LateBuilder) -> None:
    if (made := await builder.close()) is not None:
        await made.close()
