"""A client's session as the judge of its build's sources: it sees each, and may first ask what is behind it."""

from typing import Protocol

from husk.builder.graph import schemes
from husk.builder.graph.operations import Source
from husk.builder.solver.asking import Asker, ShownWork
from husk.builder.solver.interfaces import Record, Watcher
from husk.builder.solver.source_policy import (
    IMAGE,
    Decision,
    DescribedImage,
    Inquiry,
    Resolved,
    ResolvedFile,
    SourceFacts,
)
from husk.errors import InvalidParameter
from husk.registry.manifest import Platform, host_platform

_MOST_QUESTIONS = 10


class PolicySession(Protocol):
    async def check_policy(self, facts: SourceFacts, platform: Platform | None, /) -> Decision | Inquiry:
        """Ask the client's policy about a source: it decides, or wants to know more."""
        ...


class Images(Protocol):
    async def describe(self, name: str, platform: Platform, pull: bool, watcher: Watcher, /) -> DescribedImage: ...


class Layouts(Protocol):
    async def resolve(self, source: Source, platform: Platform | None, watcher: Watcher, /) -> DescribedImage: ...


class Repositories(Protocol):
    async def resolve(self, source: Source, watcher: Watcher, /) -> Resolved: ...


class Web(Protocol):
    async def have(self, source: Source, watcher: Watcher, /) -> tuple[ResolvedFile, Record]: ...


class Sources(Protocol):
    """All kinds of sources: `parts`."""

    @property
    def images(self) -> Images: ...

    @property
    def git(self) -> Repositories: ...

    @property
    def web(self) -> Web: ...

    @property
    def layouts(self) -> Layouts: ...


class SessionJudge:
    def __init__(self, sources: Sources, session: PolicySession, asker: Asker) -> None:
        """`asker` is for whom a source is looked at."""
        self._sources = sources
        self._session = session
        self._asker = asker

    async def decide(self, source: Source, platform: Platform | None, /) -> Decision:
        facts = SourceFacts(source)
        for _ in range(_MOST_QUESTIONS):
            answer = await self._session.check_policy(facts, platform)
            if isinstance(answer, Decision):
                return answer
            if answer.source.identifier != source.identifier:
                asked, ours = answer.source.identifier, source.identifier
                raise InvalidParameter(f'policy requested different source identifier: "{asked}" != "{ours}"')
            if answer.source.attributes != source.attributes:
                raise InvalidParameter("policy requested different source attrs")
            facts = await self._look(answer)
        raise InvalidParameter("too many policy requests")

    async def _look(self, inquiry: Inquiry) -> SourceFacts:
        source = inquiry.source
        scheme = source.identifier.partition("://")[0]
        if scheme not in (schemes.IMAGE, schemes.LAYOUT, schemes.GIT, *schemes.WEB):
            return SourceFacts(source)  # it is what it is when it is sent
        with ShownWork(self._asker, inquiry.shown_as or f"[internal] resolve {source.identifier}") as watcher:
            if scheme == schemes.IMAGE:
                name, platform = source.identifier.removeprefix(IMAGE), inquiry.platform or host_platform()
                return SourceFacts(source, await self._sources.images.describe(name, platform, inquiry.pull, watcher))
            if scheme == schemes.LAYOUT:
                return SourceFacts(source, await self._sources.layouts.resolve(source, inquiry.platform, watcher))
            if scheme == schemes.GIT:
                return SourceFacts(source, git=await self._sources.git.resolve(source, watcher))
            found, _ = await self._sources.web.have(source, watcher)
            return SourceFacts(source, file=found)
