"""The parts that make results, and those that bring them out. A plain build needs the exporter of images alone: the
rest is made when a client asks for it.
"""

from functools import cached_property, partial

from husk.builder.attest.sbom import Scanner
from husk.builder.cache.cache import BuildCache
from husk.builder.classic.build import ClassicBuilder
from husk.builder.classic.seen_steps import SeenSteps
from husk.builder.exporters.archive import ArchiveExport
from husk.builder.exporters.bundle import Bundler
from husk.builder.exporters.image import ImageExport
from husk.builder.exporters.layers import Finisher, ImageExporter
from husk.builder.exporters.local import LocalExport
from husk.builder.exporters.stated_files import StatedFiles
from husk.builder.exporters.tar import TarExport
from husk.builder.frontend.gateway import Bridge, GatewayFrontend
from husk.builder.frontend.reading.dockerfiles import Dockerfiles
from husk.builder.lazy_table import LazyTable
from husk.builder.remote_cache.imports import CacheImporter
from husk.builder.remote_cache.service import CacheService, LayerLoader
from husk.builder.remote_cache.targets import Targets
from husk.builder.remote_cache.write import CacheWriter
from husk.builder.solve import Exporter
from husk.builder.solver.asking import Asker
from husk.builder.solver.execution import Execution
from husk.builder.solver.sessions import Session
from husk.builder.solver.solver import Solver
from husk.builder.source_parts import SourceParts
from husk.builder.sources.session_judge import SessionJudge
from husk.builder.steps.run import Steps
from husk.builder.store.contexts import Contexts
from husk.builder.store.diffs import DiffStore
from husk.builder.store.layer_packing import LayerPacker
from husk.builder.store.stack_archives import StackArchives
from husk.builder.store.stack_lists import StackLists
from husk.builder.store.sync.exports import StackSender
from husk.builder.store.trees import Trees
from husk.builder.surroundings import BuildSurroundings


class ResultParts:
    def __init__(
        self,
        around: BuildSurroundings,
        *,
        diffs: DiffStore,
        cache: BuildCache,
        contexts: Contexts,
        trees: Trees,
        sources: SourceParts,
        steps: Steps,
        execution: Execution,
        solver: Solver,
        dockerfiles: Dockerfiles,
    ) -> None:
        self._around = around
        self._diffs = diffs
        self._cache = cache
        self._contexts = contexts
        self._trees = trees
        self._sources = sources
        self._steps = steps
        self._execution = execution
        self._solver = solver
        self._dockerfiles = dockerfiles
        self._finisher = Finisher(diffs, cache)
        self._images = ImageExporter(around.store, self._finisher)
        self._packer: LayerPacker | None = None
        self._bridge: Bridge | None = None
        image = ImageExport(self._images, lambda: self.bundler, around.store, around.images)
        self.exporters: LazyTable[Exporter] = LazyTable(
            {
                "moby": lambda: image,
                "image": lambda: image,
                "oci": partial(self._archive, "oci"),
                "docker": partial(self._archive, "docker"),
                "local": self._local,
                "tar": self._tar,
            }
        )

    async def close(self) -> None:
        if self._packer is not None:
            await self._packer.close()

    # --- exporters ---------------------------------------------------------------------------------------------------

    @cached_property
    def bundler(self) -> Bundler:
        self._packer = LayerPacker(self._around.store.blobs)
        return Bundler(self._around.store, self._finisher, self._packer)

    def _archive(self, kind: str) -> Exporter:
        return ArchiveExport(self.bundler, self._around.store.blobs, kind)

    def _local(self) -> Exporter:
        return LocalExport(StackSender(self._diffs, self._around.nursery), self._stated)

    def _tar(self) -> Exporter:
        return TarExport(StackArchives(self._diffs, self._around.nursery), self._stated)

    @cached_property
    def _stated(self) -> StatedFiles:
        return StatedFiles(StackLists(self._diffs, self._around.nursery), self._trees, self._cache.forget)

    # --- other ways to build -----------------------------------------------------------------------------------------

    @cached_property
    def classic(self) -> ClassicBuilder:
        parts = (self._contexts, self._sources.images, self._images, self._trees)
        return ClassicBuilder(self._solver, *parts, self._dockerfiles, SeenSteps.open(self._around.state))

    @cached_property
    def gateway(self) -> GatewayFrontend:
        frontend = GatewayFrontend(self._sources.images, self._steps)
        frontend.bridge = self._bridge
        return frontend

    def understand(self, bridge: Bridge) -> None:
        """This answers frontends that are images. It is known before the first of them is asked for."""
        self._bridge = bridge

    # --- what goes with a build --------------------------------------------------------------------------------------

    def judge(self, session: Session, asker: Asker) -> SessionJudge:
        """Make the judge that asks a client about the sources of its build."""

        return SessionJudge(self._sources, session, asker)

    @cached_property
    def scanner(self) -> Scanner:
        return Scanner(self._sources.images, self._contexts)

    @cached_property
    def caches(self) -> CacheService:
        store, registry = self._around.store, self._around.registry
        targets = Targets(registry, store.blobs)
        return CacheService(
            CacheImporter(registry, store),
            CacheWriter(store, self._diffs, self.bundler, targets, self._execution, self._cache),
            self._execution,
            self._cache,
            LayerLoader(self._around.images, store),
        )
