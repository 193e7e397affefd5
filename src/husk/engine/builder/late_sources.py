"""All kinds of sources. Those that are neither images nor directories of clients are made when a build has one."""

from functools import cached_property
from typing import TYPE_CHECKING

from husk.engine.builder import schemes
from husk.engine.builder.cache import BuildCache
from husk.engine.builder.execution import SourceKind
from husk.engine.builder.given import GivenStacks
from husk.engine.builder.image_source import ImageSource
from husk.engine.builder.late import LateTable
from husk.engine.builder.local_source import LocalSource
from husk.engine.builder.request_bodies import RequestBodies
from husk.engine.builder.sessions import Sessions
from husk.engine.builder.surroundings import Surroundings
from husk.storage.contexts import Contexts
from husk.storage.diffs import DiffStore

if TYPE_CHECKING:
    from husk.engine.builder.git_source import GitSource
    from husk.engine.builder.http_source import HttpSource
    from husk.engine.builder.layout_source import LayoutSource


class LateSources:
    def __init__(
        self,
        around: Surroundings,
        *,
        diffs: DiffStore,
        cache: BuildCache,
        contexts: Contexts,
        sessions: Sessions,
        images: ImageSource,
        local: LocalSource,
    ) -> None:
        self._around = around
        self._diffs = diffs
        self._cache = cache
        self._contexts = contexts
        self._sessions = sessions
        self.images = images
        self.bodies = RequestBodies()
        self.by_scheme: LateTable[SourceKind] = LateTable(
            {
                schemes.IMAGE: lambda: images,
                schemes.LOCAL: lambda: local,
                schemes.GIVEN: GivenStacks,
                schemes.GIT: lambda: self.git,
                schemes.LAYOUT: lambda: self.layouts,
                **dict.fromkeys(schemes.WEB, lambda: self.web),
            }
        )

    @cached_property
    def git(self) -> "GitSource":
        from husk.engine.builder.git_source import GitSource
        from husk.storage.repositories import Repositories

        repositories = Repositories(self._diffs, self._around.nursery, self._around.config.proxies)
        return GitSource(repositories, self._cache)

    @cached_property
    def web(self) -> "HttpSource":
        from husk.engine.builder.http_source import HttpSource
        from husk.engine.builder.seen_files import SeenFiles

        seen = SeenFiles.open(self._around.state)
        return HttpSource(self._around.registry.file, self._contexts, self._cache, self.bodies, seen)

    @cached_property
    def layouts(self) -> "LayoutSource":
        from husk.engine.builder.layout_source import LayoutSource

        return LayoutSource(self._around.images, self._around.store, self._sessions)
