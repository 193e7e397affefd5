"""Opening of the core: its rooms are put together in the order in which they need each other.

Each is handed those below it; what one needs from above is a function. What was opened is closed in the other order.
"""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import NamedTuple

from husk.config import Config
from husk.engine.base import Base, HostParts, open_base, open_host
from husk.engine.containers.index import ContainerIndex
from husk.engine.containers.parts import ContainerParts, build_containers
from husk.engine.images.parts import ImageParts, open_images
from husk.engine.logs import options as log_options
from husk.engine.networks.service import Networks
from husk.engine.system import System
from husk.engine.volumes.service import Volumes
from husk.errors import HuskError, InvalidParameter
from husk.runtime.assembly import cgroup


class Core(NamedTuple):
    """The rooms of an engine that is open, and what they stand on."""

    base: Base
    host: HostParts
    images: ImageParts
    networks: Networks
    volumes: Volumes
    containers: ContainerParts
    system: System


async def open_core(
    config: Config, stack: AsyncExitStack, open_files: int, meanwhile: Callable[[], None], keeps: bool
) -> Core:
    """As `Engine.open` tells. What is opened is closed by `stack`, in the other order.

    Networks wait for `networks.restored`, which is called when the wings that use them are open, too.
    """
    _check_log_options(config)
    base = await open_base(config, stack)
    index = ContainerIndex(base.state, base.tasks)
    # Mostly the kernel's work, which takes it a while: the rest is opened beside it.
    opening = base.tasks.spawn(_open_networks(base, index), "open networks", awaited=True)
    stack.push_async_callback(_leave_host, config, opening, index)
    host = await open_host(config, stack, open_files)
    images = await open_images(base, host.nursery, index.records, index.mounts, stack)
    volumes = await Volumes.open(config, base.state, base.events, index.records)
    stack.push_async_callback(volumes.close)
    meanwhile()
    networks = await opening
    containers = build_containers(base, host, index, images, networks, volumes, stack, keeps=keeps)
    await containers.restore(live=config.live_restore, stack=stack)
    await volumes.restored()
    await images.restored()
    system = System(config, host.facts, host.runtimes.settings(), lambda: base.state.trouble)
    return Core(base, host, images, networks, volumes, containers, system)


def _check_log_options(config: Config) -> None:
    try:
        log_options.check(config.log_driver, config.log_opts)
    except HuskError as error:
        raise InvalidParameter(f"failed to set log opts: {error.message}") from None


async def _open_networks(base: Base, index: ContainerIndex) -> Networks:
    drafts = [instance.draft for instance in index]
    return await Networks.open(base.config, base.state, base.events, drafts, lambda name: index.find(name).record)


async def _leave_host(config: Config, opening: asyncio.Task[Networks], index: ContainerIndex) -> None:
    """The bridge and the cgroup above all containers stay while containers use them."""
    await asyncio.wait([opening])
    if opening.cancelled() or opening.exception() is not None:
        return
    in_use = bool(index.aside) or any(one.record.state.status in ("running", "paused") for one in index)
    await opening.result().close(remove=not in_use)
    if not in_use:
        await asyncio.to_thread(cgroup.remove, config.cgroup_parent)
