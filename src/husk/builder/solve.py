"""One build by BuildKit's protocol, from the question to what was exported."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from husk.builder.attest import wanted as attestations
from husk.builder.attest.attester import Attester
from husk.builder.attest.wanted import WantedAttestations
from husk.builder.exporters import options as exporter_options
from husk.builder.jobs.jobs import Job, Jobs
from husk.builder.jobs.results import Question, Result
from husk.builder.remote_cache.service import CacheService
from husk.builder.solver.asking import Asker
from husk.builder.solver.interfaces import CacheSource
from husk.builder.solver.sessions import Session, Sessions
from husk.builder.solver.source_policy import Judge, SourcePolicy
from husk.builder.solver.source_rules import Policy
from husk.errors import HuskError, NotImplementedYet

_OF_LAYERS = frozenset({"moby", "image", "oci", "docker"})


class Export(Struct, frozen=True):
    kind: str
    attributes: Mapping[str, str] = {}


class BuildRequest(Struct, frozen=True, kw_only=True):
    """A build as BuildKit's protocol asks for it."""

    id: str
    session: str = ""
    question: Question | None = None  # None: the client works itself, and gives the result
    exports: Sequence[Export] = ()
    entitlements: Sequence[str] = ()
    cache_imports: Sequence[CacheSource] = ()
    cache_exports: Sequence[CacheSource] = ()
    attributes: Mapping[str, str] = {}  # which statements about the result are wanted
    source_policy: Policy = ()
    policy_session: str = ""  # of a client that is asked about each source


class Exporter(Protocol):
    def check(self, attributes: Mapping[str, str]) -> None:
        """InvalidParameter if what the client says makes no sense: known before anything is built."""
        ...

    async def export(self, job: Job, result: Result, attributes: Mapping[str, str], number: int) -> dict[str, str]:
        """Give a result to whom the client says; `number` is that of this exporter among those of the build."""
        ...


class Solves:
    def __init__(
        self,
        jobs: Jobs,
        sessions: Sessions,
        exporters: Mapping[str, Exporter],
        caches: Callable[[], CacheService],
        attester: Attester,
        judge: Callable[[Session, Asker], Judge],
    ) -> None:
        """`exporters` by the names that clients have for them; `caches` is asked if a build has some elsewhere;
        `judge` makes what asks a client about sources."""
        self._jobs = jobs
        self._caches = caches
        self._sessions = sessions
        self._exporters = exporters
        self._attester = attester
        self._judge = judge

    async def solve(self, request: BuildRequest) -> dict[str, str]:
        """Build, and return what the exporters tell. Who follows the job's log hears all of it, also why it failed."""
        session = await self._sessions.get(request.session) if request.session else None
        elsewhere = self._caches().elsewhere(request.cache_imports) if request.cache_imports else None
        policy = await self._policy(request)
        job = await self._jobs.begin(request.id, session, request.entitlements, elsewhere, policy)
        try:
            wanted = self._check(request)
            result = await (job.solve(request.question) if request.question else job.given())
            return await self._finish(job, result, request, wanted)
        except HuskError as error:
            raise job.explained(error) from error
        finally:
            await self._jobs.end(job)

    async def _policy(self, request: BuildRequest) -> Callable[[Asker], SourcePolicy] | None:
        """Return a maker of the policy about a build's sources; None if its client has no policy."""
        policies = [request.source_policy] if request.source_policy else []
        SourcePolicy(policies)
        if not request.policy_session:
            return (lambda _: SourcePolicy(policies)) if policies else None
        session = await self._sessions.get(request.policy_session)
        return lambda asker: SourcePolicy(policies, self._judge(session, asker))

    def _check(self, request: BuildRequest) -> WantedAttestations:
        """Check a request before anything is built; whoever follows the job hears the error as its end."""
        for export in request.exports:
            if export.kind not in self._exporters:
                raise NotImplementedYet(f"the exporter {export.kind} is not implemented by Husk yet")
            self._exporters[export.kind].check(export.attributes)
        if request.cache_exports:
            self._caches().check(request.cache_exports)
        return attestations.read(request.attributes)

    async def _finish(
        self, job: Job, result: Result, request: BuildRequest, wanted: WantedAttestations
    ) -> dict[str, str]:
        for ref in result.all:
            ref.to_layers = any(_makes_layers(export, result) for export in request.exports)
        await asyncio.gather(*(ref.stack() for ref in result.all))
        result = await self._attester.attest(job, result, wanted)
        if request.cache_exports:
            result = self._caches().with_inline(job, result, request.cache_exports)
        told: dict[str, str] = {}
        for number, export in enumerate(request.exports):
            told |= await self._exporters[export.kind].export(job, result, export.attributes, number)
        if request.cache_exports:
            told |= await self._caches().write(job, result, request.cache_exports)
        return told


def _makes_layers(export: Export, result: Result) -> bool:
    """Return True if the layers will be packed as the files are; those whose times are changed are not."""
    return export.kind in _OF_LAYERS and exporter_options.read(export.attributes, result.metadata).clamp is None
