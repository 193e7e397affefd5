"""The policy of one build about its sources: rules that came with the request, and a client that is asked.

    policy = SourcePolicy([rules], judge)
    source = await policy.admit(source, platform)    the source to use instead; SourceDenied

It goes with a build to everything that is done for it, as what its user has granted does: a source is asked
about before it is looked up, and all of a graph before anything of it is made (`admitted`), builds within builds too.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

import msgspec
from msgspec import Struct, structs

from husk.builder.graph import schemes
from husk.builder.graph.graph import Graph
from husk.builder.graph.operations import Edge, Source
from husk.builder.solver import source_rules
from husk.builder.solver.source_rules import Action, Policy, SourceDenied
from husk.errors import HuskError, InvalidParameter
from husk.registry import reference as references
from husk.registry.manifest import Platform

IMAGE = "docker-image://"
# How often a source may be another one, or the client may ask back, before that is taken for a circle.
_MOST_QUESTIONS = 10
# Rules that are read at once, and letters of an identifier for them.
_AT_ONCE, _SHORT = 20, 1024


class DescribedImage(Struct, frozen=True):
    """The image that a name stands for: the digest of its manifest or index (or else its id), and its configuration."""

    reference: str
    digest: str
    config: bytes


class Resolved(Struct, frozen=True):
    """The object that a name stands for now, which may be a tag, and then the commit that it is put on."""

    reference: str  # in full, or empty if a commit was asked for
    id: str
    commit: str


class ResolvedFile(Struct, frozen=True):
    """The file that an address has now."""

    digest: str
    name: str
    modified: str = ""
    etag: str = ""


class Decision(Struct, frozen=True):
    action: Action
    update: Source | None = None
    said: Sequence[str] = ()


class SourceFacts(Struct, frozen=True):
    """The facts that are known of a source: nothing but its name before the client has asked for more."""

    source: Source
    image: DescribedImage | None = None
    git: Resolved | None = None
    file: ResolvedFile | None = None


class Inquiry(Struct, frozen=True, kw_only=True):
    """The client wants to know more before it decides."""

    source: Source
    platform: Platform | None = None
    shown_as: str = ""
    pull: bool = False


class Judge(Protocol):
    """A client that decides about sources itself."""

    async def decide(self, source: Source, platform: Platform | None, /) -> Decision: ...


class SourcePolicy:
    def __init__(self, policies: Sequence[Policy], judge: Judge | None = None) -> None:
        for rules in policies:
            source_rules.check(rules)
        self._policies = list(policies)
        self._judge = judge
        # A source is asked about once in a build: a frontend looks it up, and then it is in a graph.
        self._admitted: dict[bytes, Source] = {}

    def with_policies(self, policies: Sequence[Policy]) -> "SourcePolicy":
        """The same with what a frontend wants besides."""
        return SourcePolicy([*self._policies, *policies], self._judge) if policies else self

    async def admit(self, source: Source, platform: Platform | None) -> Source:
        if source.identifier.partition("://")[0] == schemes.GIVEN or not (self._policies or self._judge):
            return source  # what is given is here already
        key = msgspec.json.encode((source, str(platform or "")), order="deterministic")
        if key not in self._admitted:
            self._admitted[key] = await self._admit(_normal(source), platform)
        return self._admitted[key]

    async def _admit(self, source: Source, platform: Platform | None) -> Source:
        for _ in range(_MOST_QUESTIONS):
            source = _normal(await self._apply(source))
            if self._judge is None:
                return source
            decision = await self._judge.decide(source, platform)
            if decision.action == Action.ALLOW:
                return source
            if decision.action != Action.CONVERT:
                raise SourceDenied(f'source "{source.identifier}" not allowed by policy: action DENY', decision.said)
            if decision.update is None:
                raise InvalidParameter("convert action requires updated source")
            source = _normal(decision.update)
        raise InvalidParameter("too many policy requests")

    async def _apply(self, source: Source) -> Source:
        """Read the rules, in a thread where that takes longer: a build may have thousands of sources."""
        if sum(map(len, self._policies)) <= _AT_ONCE and len(source.identifier) <= _SHORT:
            return source_rules.apply(self._policies, source)
        return await asyncio.to_thread(source_rules.apply, self._policies, source)

    async def admit_image(self, name: str, platform: Platform | None, mode: str = "") -> str:
        """The name of the image to use instead of this one."""
        attributes = {"image.resolvemode": mode} if mode else {}
        admitted = await self.admit(Source(IMAGE + name, attributes), platform)
        if not admitted.identifier.startswith(IMAGE):
            raise InvalidParameter(f"the source policy makes {admitted.identifier} of {name}, which is no image")
        return admitted.identifier.removeprefix(IMAGE)


FREE = SourcePolicy([])
"""Of those who have no policy."""


async def admitted(graph: Graph, wanted: Sequence[Edge], policy: SourcePolicy) -> Graph:
    """The graph with the sources that the policy wants; its vertices keep the digests by which clients know them."""
    if policy is FREE:
        return graph
    changed = Graph(graph.files)
    for vertex in graph.needed_for(*wanted):
        operation = vertex.operation
        if isinstance(operation.body, Source):
            operation = structs.replace(operation, body=await policy.admit(operation.body, operation.platform))
        changed.add_as(
            vertex.digest,
            operation,
            name=vertex.name,
            description=vertex.description,
            ignore_cache=vertex.ignore_cache,
            group=vertex.group,
            locations=vertex.locations,
        )
    return changed


def _normal(source: Source) -> Source:
    """Images by their full names, so that none gets by a rule under another one."""
    if not source.identifier.startswith(IMAGE):
        return source
    try:
        name = str(references.parse(source.identifier.removeprefix(IMAGE)).tagged())
    except HuskError:
        return source
    return structs.replace(source, identifier=IMAGE + name)
