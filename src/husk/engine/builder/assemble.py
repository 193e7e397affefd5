"""Puts the parts of the builder together. This is done when the first build begins, or somebody asks for the cache."""

import asyncio
import functools
from collections.abc import Callable
from contextlib import AsyncExitStack

from msgspec import Struct

from husk.config import CacheRule, Config
from husk.engine.builder import git_source, given, http_source, image_source, layout_source, local_source
from husk.engine.builder.attest.attester import Attester
from husk.engine.builder.attest.materials import Materials
from husk.engine.builder.attest.sbom import Scanner
from husk.engine.builder.cache import BuildCache
from husk.engine.builder.classic import ClassicBuilder
from husk.engine.builder.execution import Execution, SourceKind
from husk.engine.builder.export import Finisher, ImageExporter
from husk.engine.builder.exporters.archive import ArchiveExport
from husk.engine.builder.exporters.bundle import Bundler
from husk.engine.builder.exporters.image import ImageExport
from husk.engine.builder.exporters.local import LocalExport
from husk.engine.builder.exporters.stated_files import StatedFiles
from husk.engine.builder.exporters.tar import TarExport
from husk.engine.builder.frontend import DockerfileFrontend
from husk.engine.builder.gateway_frontend import GatewayFrontend
from husk.engine.builder.git_source import GitSource
from husk.engine.builder.http_source import HttpSource
from husk.engine.builder.image_source import ImageSource
from husk.engine.builder.jobs import Jobs
from husk.engine.builder.kept_builds import KeptBuilds
from husk.engine.builder.layout_source import LayoutSource
from husk.engine.builder.local_source import LocalSource
from husk.engine.builder.prune import CachePruner, default_rules
from husk.engine.builder.remains import Remains
from husk.engine.builder.remote.imports import CacheImporter
from husk.engine.builder.remote.layers import LayerLoader
from husk.engine.builder.remote.service import CacheService
from husk.engine.builder.remote.targets import Targets
from husk.engine.builder.remote.write import CacheWriter
from husk.engine.builder.request_bodies import RequestBodies
from husk.engine.builder.seen_files import SeenFiles
from husk.engine.builder.service import Builder
from husk.engine.builder.sessions import Sessions
from husk.engine.builder.solve import Exporter, Solves
from husk.engine.builder.solver import Solver
from husk.engine.builder.steps import platforms
from husk.engine.builder.steps.cache_mounts import CacheMounts
from husk.engine.builder.steps.cache_mounts import Kept as KeptCacheMount
from husk.engine.builder.steps.mounts import Mounts
from husk.engine.builder.steps.run import Steps
from husk.engine.host import Host
from husk.engine.images.held import LayerHolder
from husk.engine.images.service import Images
from husk.engine.images.store import ImageStore
from husk.engine.model.build import CACHE_MOUNT
from husk.engine.networks.service import Networks
from husk.registry.client import RegistryClient
from husk.registry.manifest import Platform
from husk.runtime import processor
from husk.runtime.assembly.paths import Paths
from husk.runtime.assembly.step import StepFiles
from husk.runtime.emulators import registered
from husk.runtime.foreground import Foreground
from husk.runtime.rest import Rest
from husk.runtime.runtimes import Runtimes
from husk.storage.build_records import BuildRecords
from husk.storage.contexts import Contexts
from husk.storage.diffs import DiffStore
from husk.storage.layer_packing import LayerPacker
from husk.storage.repositories import Repositories
from husk.storage.stack_archives import StackArchives
from husk.storage.stack_lists import StackLists
from husk.storage.state.store import StateStore
from husk.storage.sync.exports import StackSender
from husk.storage.sync.mirrors import Mirrors
from husk.storage.trees import Trees
from husk.storage.volumes.caches import CacheDirectories
from husk.storage.workers.nursery import Nursery
from husk.watch import Watch


class Surroundings(Struct, frozen=True, kw_only=True):
    """What builds share with the rest of the engine."""

    config: Config
    state: StateStore
    store: ImageStore
    images: Images
    networks: Networks
    runtimes: Runtimes
    host: Host
    paths: Paths
    nursery: Nursery
    registry: RegistryClient
    watch: Watch
    power_held: bool  # has it, since the last daemon ran?


async def open_builder(around: Surroundings) -> Builder:
    async with AsyncExitStack() as stack:
        builder = await _open(around, stack)
        builder.owns(stack.pop_all())
    return builder


async def _open(around: Surroundings, stack: AsyncExitStack) -> Builder:
    store, state, config = around.store, around.state, around.config
    diffs = await DiffStore.open(store.layers, state, store.blobs, around.nursery, power_held=around.power_held)
    stack.push_async_callback(diffs.close)
    assert store.held is not None
    cache = await BuildCache.open(state, diffs, store.pins, LayerHolder(store.held, store.release))
    contexts = Contexts(diffs, around.nursery)
    images = ImageSource(around.images, store, around.registry)
    sessions = Sessions()
    mirrors = await asyncio.to_thread(Mirrors.open, config.data_root / "mirrors", diffs, around.nursery)
    trees = Trees(diffs, around.nursery, mirrors.table)
    git = GitSource(Repositories(diffs, around.nursery, config.proxies), cache)
    layouts = LayoutSource(around.images, store, sessions)
    bodies = RequestBodies()
    web = HttpSource(around.registry.file, contexts, cache, bodies, SeenFiles.open(state))
    sources: dict[str, SourceKind] = {
        image_source.SCHEME: images,
        local_source.SCHEME: LocalSource(mirrors, sessions, cache.give_up),
        given.SCHEME: given.GivenStacks(),
        git_source.SCHEME: git,
        layout_source.SCHEME: layouts,
        **dict.fromkeys(http_source.SCHEMES, web),
    }
    caches = await _open_cache_mounts(around, stack)
    remains = Remains(cache.forget)
    steps = _steps(around, Mounts(diffs, caches), remains)
    execution = Execution(sources, trees, steps, contexts)
    solver = Solver(execution, cache, around.watch)
    finisher = Finisher(diffs, cache)
    exporter = ImageExporter(store, finisher)
    packer = LayerPacker(store.blobs)
    stack.push_async_callback(packer.close)
    bundler = Bundler(store, finisher, packer)
    targets = Targets(around.registry, store.blobs)
    remote = CacheService(
        CacheImporter(around.registry, store),
        CacheWriter(store, diffs, bundler, targets, execution, cache),
        execution,
        cache,
        LayerLoader(around.images, store),
    )
    pruner = CachePruner(cache, caches, lambda: diffs.shared() | store.layer_elements())
    gateway = GatewayFrontend(images, steps)
    jobs = Jobs(solver, DockerfileFrontend(solver, contexts, images, layouts), gateway, steps.held, remains)
    stated = StatedFiles(StackLists(diffs, around.nursery), trees, cache.forget)
    exporters: dict[str, Exporter] = {
        "moby": ImageExport(exporter, bundler, store, around.images),
        "image": ImageExport(exporter, bundler, store, around.images),
        "oci": ArchiveExport(bundler, store.blobs, "oci"),
        "docker": ArchiveExport(bundler, store.blobs, "docker"),
        "local": LocalExport(StackSender(diffs, around.nursery), stated),
        "tar": TarExport(StackArchives(diffs, around.nursery), stated),
    }
    attester = Attester(Materials(images, git, web), Scanner(images, contexts))
    return Builder(
        classic=ClassicBuilder(solver, contexts, images, exporter, trees),
        jobs=jobs,
        gateway=gateway,
        execution=execution,
        kept=KeptBuilds(BuildRecords(config.data_root / "build-records")),
        sessions=sessions,
        solves=Solves(jobs, sessions, exporters, remote, attester),
        cache=cache,
        pruner=pruner,
        contexts=contexts,
        bodies=bodies,
        images=images,
        layouts=layouts,
        git=git,
        web=web,
        steps=steps,
        registry=around.registry,
        rules=_rules(config, await asyncio.to_thread(diffs.disk_size)),
        platforms=await _platforms(around.host.machine),
        rest=Rest(),
        watch=around.watch,
    )


async def _platforms(machine: str) -> Callable[[], list[Platform]]:
    """Emulators may come and go, the processor stays."""
    flags = await asyncio.to_thread(processor.flags)
    return lambda: platforms.runnable(machine, flags, registered())


async def _open_cache_mounts(around: Surroundings, stack: AsyncExitStack) -> CacheMounts:
    kept = around.state.records(CACHE_MOUNT, KeptCacheMount)
    place = around.config.data_root / "cache-mounts"
    directories = await asyncio.to_thread(CacheDirectories.open, place, set(kept))
    caches = await CacheMounts.open(directories, around.state, kept.values())
    stack.push_async_callback(caches.close)
    return caches


def _steps(around: Surroundings, mounts: Mounts, remains: Remains) -> Steps:
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
    """What steps may ask for, by BuildKit's names."""
    allowed = {"network.host": config.builder.host_network, "security.insecure": config.builder.insecure}
    return [name for name, is_allowed in allowed.items() if is_allowed]


def _rules(config: Config, disk: int) -> tuple[CacheRule, ...]:
    if not config.builder.collects:
        return ()
    return config.builder.rules or default_rules(config.builder.keep or disk // 10)
