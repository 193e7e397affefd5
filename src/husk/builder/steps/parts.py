"""The parts that run processes of builds, with the directories that such processes keep between builds."""

import asyncio
from contextlib import AsyncExitStack
from functools import partial
from typing import NamedTuple

from husk.builder.cache.cache import BuildCache
from husk.builder.steps.cache_mounts import CacheMountRecord as KeptCacheMount
from husk.builder.steps.cache_mounts import CacheMounts
from husk.builder.steps.mounts import Mounts
from husk.builder.steps.remains import Remains
from husk.builder.steps.run import Steps
from husk.builder.store.cache_directories import CacheDirectories
from husk.builder.store.parts import StoreParts
from husk.builder.surroundings import BuildSurroundings
from husk.config import Config
from husk.engine.model.build import CACHE_MOUNT
from husk.runtime.assembly.step import StepFiles
from husk.runtime.supervise.foreground import Foreground


class StepParts(NamedTuple):
    run: Steps
    caches: CacheMounts
    remains: Remains


async def open_steps(
    around: BuildSurroundings, store: StoreParts, cache: BuildCache, stack: AsyncExitStack
) -> StepParts:
    caches = await _open_cache_mounts(around)
    stack.push_async_callback(caches.close)
    remains = Remains(cache.forget)
    steps = Steps(
        paths=around.paths,
        files=partial(StepFiles, around.paths),
        mounts=Mounts(store.diffs, caches),
        networks=around.networks,
        runtimes=around.runtimes,
        foreground=Foreground(),
        host=around.host,
        defaults=around.config.containers,
        entitlements=_entitlements(around.config),
        limits=around.config.builder.limits,
        remains=remains,
    )
    stack.push_async_callback(steps.close)
    return StepParts(steps, caches, remains)


async def _open_cache_mounts(around: BuildSurroundings) -> CacheMounts:
    kept = around.state.records(CACHE_MOUNT, KeptCacheMount)
    place = around.config.data_root / "cache-mounts"
    directories = await asyncio.to_thread(CacheDirectories.open, place, set(kept))
    return await CacheMounts.open(directories, around.state, kept.values())


def _entitlements(config: Config) -> list[str]:
    """Return the entitlements that the configuration allows to steps, by BuildKit's names."""
    allowed = {"network.host": config.builder.host_network, "security.insecure": config.builder.insecure}
    return [name for name, is_allowed in allowed.items() if is_allowed]
