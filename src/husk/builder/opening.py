"""Puts the parts of the builder together. This is done when the first build begins, or somebody asks for the cache."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

from husk.builder.cache.cache import BuildCache
from husk.builder.cache.prune import CachePruner, default_rules
from husk.builder.frontend.parts import FrontendParts
from husk.builder.jobs.kept_builds import KeptBuilds
from husk.builder.result_parts import ResultParts
from husk.builder.service import Builder
from husk.builder.solver.sessions import Sessions
from husk.builder.sources.parts import SourceParts
from husk.builder.steps import platforms
from husk.builder.steps.parts import open_steps
from husk.builder.store.build_records import BuildRecords
from husk.builder.store.parts import StoreParts, open_store
from husk.builder.surroundings import BuildSurroundings
from husk.config import CacheRule, Config
from husk.engine.images.held import LayerHolder
from husk.registry.manifest import Platform
from husk.runtime import emulators
from husk.runtime.emulators import registered
from husk.runtime.rest import Rest


async def open_builder(around: BuildSurroundings) -> Builder:
    async with AsyncExitStack() as stack:
        builder = await _open(around, stack)
        builder.owns(stack.pop_all())
    return builder


async def _open(around: BuildSurroundings, stack: AsyncExitStack) -> Builder:
    sessions = Sessions()
    store = await open_store(around, stack)
    cache = await _open_cache(around, store)
    sources = SourceParts(around, store, cache, sessions)
    steps = await open_steps(around, store, cache, stack)
    frontend = FrontendParts(around, store, cache, sources, steps)
    results = ResultParts(around, store, cache, sources, frontend, sessions)
    stack.push_async_callback(results.close)
    return Builder(
        kept=KeptBuilds(BuildRecords(around.config.data_root / "build-records")),
        sessions=sessions,
        cache=cache,
        pruner=CachePruner(cache, steps.caches, lambda: store.diffs.shared() | around.store.layer_elements()),
        contexts=store.contexts,
        sources=sources,
        steps=steps.run,
        frontend=frontend,
        results=results,
        registry=around.registry,
        rules=_rules(around.config, await asyncio.to_thread(store.diffs.disk_size)),
        platforms=await _platforms(around.host.machine),
        rest=Rest(),
        watch=around.watch,
    )


async def _open_cache(around: BuildSurroundings, store: StoreParts) -> BuildCache:
    images = around.store
    assert images.held is not None
    return await BuildCache.open(around.state, store.diffs, images.pins, LayerHolder(images.held, images.release))


async def _platforms(machine: str) -> Callable[[], list[Platform]]:
    """Emulators may come and go, the processor stays."""
    flags = await asyncio.to_thread(emulators.processor_flags)
    return lambda: platforms.runnable(machine, flags, registered())


def _rules(config: Config, disk: int) -> tuple[CacheRule, ...]:
    if not config.builder.collects:
        return ()
    return config.builder.rules or default_rules(config.builder.keep or disk // 10)
