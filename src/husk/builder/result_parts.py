"""The parts that make results, and those that bring them out. A plain build needs the exporter of images alone: the
rest is made when a client asks for it.
"""

from functools import cached_property, partial

from husk.builder.attest.attester import Attester
from husk.builder.attest.materials import Materials
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
from husk.builder.frontend.parts import FrontendParts
from husk.builder.lazy_table import LazyTable
from husk.builder.remote_cache.imports import CacheImporter
from husk.builder.remote_cache.service import CacheService, LayerLoader
from husk.builder.remote_cache.targets import Targets
from husk.builder.remote_cache.write import CacheWriter
from husk.builder.solve import Exporter, Solves
from husk.builder.solver.asking import Asker
from husk.builder.solver.sessions import Session, Sessions
from husk.builder.sources.parts import SourceParts
from husk.builder.sources.session_judge import SessionJudge
from husk.builder.store.layer_packing import LayerPacker
from husk.builder.store.parts import StoreParts
from husk.builder.store.stack_archives import StackArchives
from husk.builder.store.stack_lists import StackLists
from husk.builder.store.sync.exports import StackSender
from husk.builder.surroundings import BuildSurroundings


class ResultParts:
    def __init__(
        self,
        around: BuildSurroundings,
        store: StoreParts,
        cache: BuildCache,
        sources: SourceParts,
        frontend: FrontendParts,
        sessions: Sessions,
    ) -> None:
        self._around = around
        self._store = store
        self._cache = cache
        self._sources = sources
        self._frontend = frontend
        self._finisher = Finisher(store.diffs, cache)
        self._images = ImageExporter(around.store, self._finisher)
        self._packer: LayerPacker | None = None
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
        materials = Materials(sources.images, lambda: sources.git, lambda: sources.web)
        attester = Attester(materials, lambda: self.scanner)
        self.solves = Solves(frontend.jobs, sessions, self.exporters, lambda: self.caches, attester, self._judge)

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
        return LocalExport(StackSender(self._store.diffs, self._around.nursery), self._stated)

    def _tar(self) -> Exporter:
        return TarExport(StackArchives(self._store.diffs, self._around.nursery), self._stated)

    @cached_property
    def _stated(self) -> StatedFiles:
        return StatedFiles(StackLists(self._store.diffs, self._around.nursery), self._store.trees, self._cache.forget)

    # --- other ways to build -----------------------------------------------------------------------------------------

    @cached_property
    def classic(self) -> ClassicBuilder:
        parts = (self._store.contexts, self._sources.images, self._images, self._store.trees)
        frontend, seen = self._frontend, SeenSteps.open(self._around.state)
        return ClassicBuilder(frontend.solver, *parts, frontend.dockerfiles, seen)

    # --- what goes with a build --------------------------------------------------------------------------------------

    def _judge(self, session: Session, asker: Asker) -> SessionJudge:
        """Make the judge that asks a client about the sources of its build."""

        return SessionJudge(self._sources, session, asker)

    @cached_property
    def scanner(self) -> Scanner:
        return Scanner(self._sources.images, self._store.contexts)

    @cached_property
    def caches(self) -> CacheService:
        store, registry = self._around.store, self._around.registry
        targets = Targets(registry, store.blobs)
        return CacheService(
            CacheImporter(registry, store),
            CacheWriter(store, self._store.diffs, self.bundler, targets, self._frontend.execution, self._cache),
            self._frontend.execution,
            self._cache,
            LayerLoader(self._around.images, store),
        )
