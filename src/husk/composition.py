"""The engine as a whole, as the API, the daemon and the library see it: the core, with its wings put to it.

The core (`husk.engine`) knows no wing. A wing is given what the core has opened (`Core`), and is loaded when
something is left of its work or somebody asks for it.

async with Engine.open(config) as engine:
    for container in engine.containers.listing(all=True, limit=0, filters=NO_FILTERS):
        print(container.name)
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from husk.aio.once import Once, load
from husk.config import Config
from husk.engine.model.build import CACHE_MOUNT, RECORD
from husk.engine.model.image import CommitOptions
from husk.engine.networks.service import Networks
from husk.engine.opening import Core, open_core
from husk.storage.secrets.traces import KEY, TASK_FILES, any_left
from husk.storage.state.store import StateStore

if TYPE_CHECKING:
    from husk.builder.cache.prune import Item
    from husk.builder.service import Builder
    from husk.swarm.control import SwarmControl
    from husk.swarm.surroundings import SwarmSurroundings

# Records that only a swarm has.
SWARM_KINDS = ("swarm", "membership", "node", "service", "task", "secret", "config")


class Engine:
    """One engine on one data root. Closing it leaves containers running; the next one takes them over."""

    def __init__(self, core: Core, builder: "LateBuilder", build_swarm: "Callable[[], SwarmControl]") -> None:
        """`build_swarm` makes the control of a swarm where nothing is left of one."""
        self._core = core
        self.config = core.base.config
        self.watch = core.base.watch
        self.events = core.base.events
        self.containers = core.containers.service
        self.container_pruner = core.containers.pruner
        self.execs = core.containers.life.execs
        self.verbs = core.containers.verbs
        self.images = core.images.service
        self.networks = core.networks
        self.volumes = core.volumes
        self.system = core.system
        self.builder = builder
        self._swarm: SwarmControl | None = None
        self._build_swarm = build_swarm

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        config: Config,
        open_files: int = 0,
        meanwhile: Callable[[], None] = lambda: None,
        keeps: bool = False,
    ) -> AsyncIterator["Engine"]:
        """`open_files` is the soft limit that containers get, if it is not this process's own. `meanwhile` is called
        once, when the kernel has work to do for us that it would be waited for. With `keeps` a container that somebody
        waits for ends with the engine, and needs no monitor for that.

        Conflict when another engine has the data root or the exec root: it is told which process, and nothing is
        touched.
        """
        async with AsyncExitStack() as stack:
            core = await open_core(config, stack, open_files, meanwhile, keeps)
            builder = LateBuilder(partial(_open_builder, core), core.base.state)
            stack.push_async_callback(_close_builder, builder)
            engine = cls(core, builder, partial(_build_swarm, stack, core))
            if await swarm_wanted(config, core.base.state, core.networks):
                engine._swarm = await _open_swarm(stack, core)
            core.networks.restored()
            yield engine

    async def commit(self, container: str, options: CommitOptions) -> str:
        """Make an image from a container; its id."""
        return await self.verbs.committer.commit(container, options)

    @property
    def workers_employed(self) -> int:
        """The number of worker processes that there have been."""
        return self._core.host.nursery.employed

    def worker_processes(self) -> int:
        """Count the worker processes that there are now. It reads a file: not for the event loop."""
        return self._core.host.nursery.processes()

    @property
    def swarm(self) -> "SwarmControl":
        """Control of the swarm. Where there was nothing of one at the start, it is built with the first question."""
        if self._swarm is None:
            self._swarm = self._build_swarm()
        return self._swarm

    @property
    def swarm_if_any(self) -> "SwarmControl | None":
        """Control of the swarm; None where there can be none: nobody asked for one, and nothing was left of one."""
        return self._swarm

    @property
    def swarm_state(self) -> str:
        """`inactive`, `pending`, `locked`, `active/worker` or `active/manager`, as a ping tells it."""
        if self._swarm is None:
            return "inactive"
        cluster = self._swarm.cluster
        if cluster.place is not None:
            return "active/worker"
        if cluster.pending:
            return "pending"
        return "locked" if cluster.locked else "active/manager" if cluster.active else "inactive"

    def reload(self, config: Config) -> None:
        """Take over what `config.load.reloadable` lets change while the daemon runs. InvalidParameter: nothing has."""
        from husk.engine.reloaded import told

        runtimes = self._core.host.runtimes
        runtimes.reload(config)
        self.config = config
        self.system.reload(config, runtimes.settings(), runtimes.default.name)
        self.networks.reload()
        self.containers.reload(config.containers, runtimes.default.name)
        self.builder.change(lambda builder: builder.reload(config.containers))
        self._core.images.reload(config)
        info = self.system.info()
        self.events.publish("daemon", "reload", info.engine_id, {"name": info.hostname, **told(config)})


class LateBuilder(Once["Builder"]):
    """The builder, put together when the first build begins or somebody asks for the cache.

    Builds need much that nothing else does: a daemon that never builds loads none of it.
    """

    def __init__(self, make: "Callable[[], Coroutine[object, object, Builder]]", state: StateStore) -> None:
        super().__init__(make, "open the builder")
        self._state = state

    async def cache(self) -> "list[Item]":
        """List the cache that builds have kept. Where they have kept nothing, nothing is loaded to say so."""
        if self.made is None and not any((await self._state.fetch_several((RECORD, CACHE_MOUNT))).values()):
            return []
        return await (await self.get()).items()


async def _open_builder(core: Core) -> "Builder":
    await load("husk.builder.opening")
    from husk.builder.opening import open_builder
    from husk.builder.surroundings import BuildSurroundings

    return await open_builder(
        BuildSurroundings(
            config=core.base.config,
            state=core.base.state,
            store=core.images.store,
            images=core.images.service,
            networks=core.networks,
            runtimes=core.host.runtimes,
            host=core.host.facts,
            paths=core.host.assembly.paths,
            nursery=core.host.nursery,
            registry=core.images.registry.client(),
            watch=core.base.watch,
            power_held=core.images.power_held,
        )
    )


async def _close_builder(builder: LateBuilder) -> None:
    if (made := await builder.close()) is not None:
        await made.close()


async def swarm_wanted(config: Config, state: StateStore, networks: Networks) -> bool:
    """Tell if something is left of a swarm, be it in the middle of leaving; most daemons never see one."""
    if config.cluster_store is not None or state.has(*SWARM_KINDS):
        return True
    if any(network.scope == "swarm" for network in networks.listing()):
        return True
    return await asyncio.to_thread(any_left, config.data_root / KEY, config.exec_root / TASK_FILES)


async def _open_swarm(stack: AsyncExitStack, core: Core) -> "SwarmControl":
    from husk.swarm.opening import open_swarm

    return await open_swarm(stack, _around_swarm(core))


def _build_swarm(stack: AsyncExitStack, core: Core) -> "SwarmControl":
    from husk.swarm.opening import build_swarm

    return build_swarm(stack, _around_swarm(core))


def _around_swarm(core: Core) -> "SwarmSurroundings":
    from husk.swarm.model.node import Machine
    from husk.swarm.surroundings import SwarmSurroundings

    info = core.system.info()
    return SwarmSurroundings(
        config=core.base.config,
        state=core.base.state,
        events=core.base.events,
        containers=core.containers.service,
        images=core.images.service,
        networks=core.networks,
        machine=Machine(info.hostname, info.machine, info.cpus, info.memory, info.version),
    )
