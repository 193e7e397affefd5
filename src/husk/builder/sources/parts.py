"""All kinds of sources. Those that are neither images nor directories of clients are made when a build has one."""

from functools import cached_property

from husk.builder.cache.cache import BuildCache
from husk.builder.graph import schemes
from husk.builder.lazy_table import LazyTable
from husk.builder.solver.execution import SourceKind
from husk.builder.solver.sessions import Sessions
from husk.builder.sources.git import GitSource
from husk.builder.sources.given import GivenStacks
from husk.builder.sources.http import HttpSource
from husk.builder.sources.images import ImageSource
from husk.builder.sources.layouts import LayoutSource
from husk.builder.sources.local import LocalSource
from husk.builder.sources.request_bodies import RequestBodies
from husk.builder.sources.seen_files import SeenFiles
from husk.builder.store.parts import StoreParts
from husk.builder.store.repositories import Repositories
from husk.builder.surroundings import BuildSurroundings


class SourceParts:
    def __init__(self, around: BuildSurroundings, store: StoreParts, cache: BuildCache, sessions: Sessions) -> None:
        self._around = around
        self._store = store
        self._cache = cache
        self._sessions = sessions
        self.images = ImageSource(around.images, around.store, around.registry)
        self.bodies = RequestBodies()
        local = LocalSource(store.mirrors, sessions, cache.give_up, cache.release_unnamed)
        self.by_scheme: LazyTable[SourceKind] = LazyTable(
            {
                schemes.IMAGE: lambda: self.images,
                schemes.LOCAL: lambda: local,
                schemes.GIVEN: GivenStacks,
                schemes.GIT: lambda: self.git,
                schemes.LAYOUT: lambda: self.layouts,
                **dict.fromkeys(schemes.WEB, lambda: self.web),
            }
        )

    @cached_property
    def git(self) -> GitSource:
        repositories = Repositories(self._store.diffs, self._around.nursery, self._around.config.proxies)
        return GitSource(repositories, self._cache)

    @cached_property
    def web(self) -> HttpSource:
        seen = SeenFiles.open(self._around.state)
        return HttpSource(self._around.registry.file, self._store.contexts, self._cache, self.bodies, seen)

    @cached_property
    def layouts(self) -> LayoutSource:
        return LayoutSource(self._around.images, self._around.store, self._sessions)
