"""Puts the parts of the builder together. This is done when the first build begins, or somebody asks for the cache."""

import asyncio
import functools
from collections.abc import Callable
from contextlib import AsyncExitStack

from husk.builder.attest.attester import Attester
from husk.builder.attest.materials import Materials
from husk.builder.cache.cache import BuildCache
from husk.builder.cache.prune import CachePruner, default_rules
from husk.builder.frontend.dockerfile_frontend import DockerfileFrontend
from husk.builder.frontend.reading.definitions import Definitions
from husk.builder.frontend.reading.dockerfiles import Dockerfiles
from husk.builder.jobs.jobs import Jobs
from husk.builder.jobs.kept_builds import KeptBuilds
from husk.builder.result_parts import ResultParts
from husk.builder.service import Builder
from husk.builder.solve import Solves
from husk.builder.solver.execution import Execution
from husk.builder.solver.sessions import Sessions
from husk.builder.solver.solver import Solver
from husk.builder.source_parts import SourceParts
from husk.builder.sources.images import ImageSource
from husk.builder.sources.local import LocalSource
from husk.builder.steps import platforms
from husk.builder.steps.cache_mounts import CacheMountRecord as KeptCacheMount
from husk.builder.steps.cache_mounts import CacheMounts
from husk.builder.steps.mounts import Mounts
from husk.builder.steps.remains import Remains
from husk.builder.steps.run import Steps
from husk.builder.store.build_records import BuildRecords
from husk.builder.store.cache_directories import CacheDirectories
from husk.builder.store.contexts import Contexts
from husk.builder.store.diffs import DiffStore
from husk.builder.store.sync.mirrors import Mirrors
from husk.builder.store.trees import Trees
from husk.builder.store.workers import jobs as build_jobs
from husk.builder.store.workers.parser import Parsers
from husk.builder.surroundings import BuildSurroundings
from husk.config import CacheRule, Config
from husk.engine.images.held import LayerHolder
from husk.engine.model.build import CACHE_MOUNT
from husk.registry.manifest import Platform
from husk.runtime import processor
from husk.runtime.assembly.step import StepFiles
from husk.runtime.emulators import registered
from husk.runtime.rest import Rest
from husk.runtime.supervise.foreground import Foreground


async def open_builder(around: BuildSurroundings) -> Builder:
    async with AsyncExitStack() as stack:
        builder = await _open(around, stack)
        builder.owns(stack.pop_all())
    return builder


async def _open(around: BuildSurroundings, stack: AsyncExitStack) -> Builder:
    store, state, config = around.store, around.state, around.config
    around.nursery.load(build_jobs.__name__, soon=False)
    diffs = await DiffStore.open(store.layers, state, store.blobs, around.nursery, power_held=around.power_held)
    stack.push_async_callback(diffs.close)
    assert store.held is not None
    cache = await BuildCache.open(state, diffs, store.pins, LayerHolder(store.held, store.release))
    contexts = Contexts(diffs, around.nursery)
    images = ImageSource(around.images, store, around.registry)
    sessions = Sessions()
    mirrors = await asyncio.to_thread(Mirrors.open, config.data_root / "mirrors", diffs, around.nursery)
    stack.push_async_callback(mirrors.close)
    trees = Trees(diffs, around.nursery, mirrors.table)
    sources = SourceParts(
        around,
        diffs=diffs,
        cache=cache,
        contexts=contexts,
        sessions=sessions,
        images=images,
        local=LocalSource(mirrors, sessions, cache.give_up, cache.release_unnamed),
    )
    caches = await _open_cache_mounts(around, stack)
    remains = Remains(cache.forget)
    steps = _steps(around, Mounts(diffs, caches), remains)
    stack.push_async_callback(steps.close)
    parsers = Parsers(around.nursery)
    definitions = Definitions(parsers)
    execution = Execution(sources.by_scheme, trees, steps, contexts, definitions.read)
    solver = Solver(execution, cache, around.watch)
    dockerfiles = Dockerfiles(parsers)
    late = ResultParts(
        around,
        diffs=diffs,
        cache=cache,
        contexts=contexts,
        trees=trees,
        sources=sources,
        steps=steps,
        execution=execution,
        solver=solver,
        dockerfiles=dockerfiles,
    )
    stack.push_async_callback(late.close)
    frontend = DockerfileFrontend(solver, contexts, images, lambda: sources.layouts, dockerfiles)
    jobs = Jobs(solver, frontend, lambda: late.gateway, steps.held, remains)
    attester = Attester(Materials(images, lambda: sources.git, lambda: sources.web), lambda: late.scanner)
    return Builder(
        jobs=jobs,
        kept=KeptBuilds(BuildRecords(config.data_root / "build-records")),
        sessions=sessions,
        solves=Solves(jobs, sessions, late.exporters, lambda: late.caches, attester, late.judge),
        cache=cache,
        pruner=CachePruner(cache, caches, lambda: diffs.shared() | store.layer_elements()),
        contexts=contexts,
        sources=sources,
        late=late,
        steps=steps,
        registry=around.registry,
        rules=_rules(config, await asyncio.to_thread(diffs.disk_size)),
        platforms=await _platforms(around.host.machine),
        rest=Rest(),
        definitions=definitions,
        watch=around.watch,
    )


async def _platforms(machine: str) -> Callable[[], list[Platform]]:
    """Emulators may come and go, the processor stays."""
    flags = await asyncio.to_thread(processor.flags)
    return lambda: platforms.runnable(machine, flags, registered())


async def _open_cache_mounts(around: BuildSurroundings, stack: AsyncExitStack) -> CacheMounts:
    kept = around.state.records(CACHE_MOUNT, KeptCacheMount)
    place = around.config.data_root / "cache-mounts"
    directories = await asyncio.to_thread(CacheDirectories.open, place, set(kept))
    caches = await CacheMounts.open(directories, around.state, kept.values())
    stack.push_async_callback(caches.close)
    return caches


def _steps(around: BuildSurroundings, mounts: Mounts, remains: Remains) -> Steps:
    return Steps(
        paths=around.paths,
        files=functools.partial(StepFiles, around.paths),
        mounts=mounts,
        networks=around.networks,
        runtimes=around.runtimes,
        foreground=Foreground(),
        host=around.host,
        defaults=around.config.containers,
        entitlements=_entitlements(around.config),
        remains=remains,
    )


def _entitlements(config: Config) -> list[str]:
    """Return the entitlements that the configuration allows to steps, by BuildKit's names."""
    allowed = {"network.host": config.builder.host_network, "security.insecure": config.builder.insecure}
    return [name for name, is_allowed in allowed.items() if is_allowed]


def _rules(config: Config, disk: int) -> tuple[CacheRule, ...]:
    if not config.builder.collects:
        return ()
    return config.builder.rules or default_rules(config.builder.keep or disk // 10)
