"""Builds that clients ask for by BuildKit's protocol: each is a job, by an id that the client has chosen.

    job = jobs.begin(id, session)     what it tells can be followed from now on
    result = await job.solve(...)     refs, and what is known of them
    await job.close()                 whatever it held is let go of

A client may also work itself: it begins a job, asks for what it needs (`solve`, and the files of refs) and gives the
result (`give`, awaited by `given`). That is how buildx builds.
"""

import asyncio
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from msgspec import structs

from husk.aio.tasks import Tasks
from husk.builder.dockerfile.rules import Warning
from husk.builder.dockerfile.syntax import Syntax
from husk.builder.graph.graph import Definition, KnownVertices, Location, SourceFile
from husk.builder.jobs import failure
from husk.builder.jobs.containers import Hold, JobContainers
from husk.builder.jobs.failure import BuildFailed, FailedStep, of_vertex
from husk.builder.jobs.results import (
    DOCKERFILE,
    GATEWAY,
    FrontendResult,
    Predicate,
    Question,
    Result,
    result_of,
)
from husk.builder.jobs.status_log import StatusLog, VertexTold, WarningTold
from husk.builder.solver import entitlements
from husk.builder.solver.asking import Asker
from husk.builder.solver.interfaces import Elsewhere
from husk.builder.solver.refs import Ref
from husk.builder.solver.sessions import Session
from husk.builder.solver.solver import Solver
from husk.builder.solver.source_policy import FREE, SourcePolicy
from husk.builder.steps.plan import StepFailed
from husk.builder.steps.remains import Remains
from husk.engine.model.clock import now_ns
from husk.errors import Conflict, HuskError, InvalidParameter, NotFound, NotImplementedYet

# A client may ask for the status of a build that it is about to begin.
_PATIENCE = 20.0
_MOST_ENDED = 100


class JobLimits(NamedTuple):
    """Limits of one build."""

    #: Results that it may ask for.
    refs: int = 10_000
    #: How often it is warned, and with how many bytes: each warning has the file that it is about.
    warnings: int = 1000
    warned: int = 8 << 20
    #: Operations that it is told of, and their bytes.
    operations: int = KnownVertices.MOST
    operation_bytes: int = KnownVertices.MOST_BYTES


LIMITS = JobLimits()


class DockerfileFrontend(Protocol):
    """The built-in frontend: `frontend.dockerfile_frontend`."""

    async def solve(self, attributes: Mapping[str, str], asker: Asker, /) -> FrontendResult: ...


class ImageFrontends(Protocol):
    """Frontends that are images: `frontend.gateway`."""

    async def solve(self, job: "Job", question: Question) -> Result: ...


class Job:
    def __init__(
        self,
        id: str,
        session: Session | None,
        solver: Solver,
        frontend: DockerfileFrontend,
        images: Callable[[], ImageFrontends] | None = None,
        log: StatusLog | None = None,
        hold: Hold | None = None,
        granted: Collection[str] = (),
        elsewhere: Callable[[Asker], Elsewhere | None] | None = None,
        policy: Callable[[Asker], SourcePolicy] | None = None,
        limits: JobLimits = LIMITS,
    ) -> None:
        """`images` makes what runs frontends that are images, `hold` runs processes that somebody talks with,
        `elsewhere` makes what knows the client's caches, `policy` what says which sources the build may have."""
        self.id = id
        self.session = session
        self.log = log or StatusLog()
        self.elsewhere = elsewhere(Asker(self.log, session)) if elsewhere else None
        self.policy = policy(Asker(self.log, session)) if policy else FREE
        self.inputs: Mapping[str, Definition] = {}
        self.predicates: Mapping[str, Sequence[Predicate]] = {}  # what was stated about the result
        self.started = now_ns()
        self._warnings = self._warned = 0
        self._limits = limits
        self.known = KnownVertices(limits.operations, limits.operation_bytes)
        self.depth = 0  # how many frontends that are images have led here
        self._owns_log = log is None
        self._solver = solver
        self._frontend = frontend
        self._images = images
        self._hold = hold
        self.containers = JobContainers(hold, session, granted)
        self._granted = granted
        self._refs: dict[str, Ref] = {}
        self._ids: dict[Ref, str] = {}
        self._questions: dict[Ref, Question] = {}
        self.scans: dict[Ref, Mapping[str, Ref]] = {}  # what an SBOM of a ref is to tell of besides
        self._ending = Tasks()
        self._given: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

    async def solve(self, question: Question) -> Result:
        """Refs are made when they are needed, or now if the question says so."""
        policy = self.policy.with_policies(question.source_policies)
        if question.definition is not None:
            result = Result(ref=self.definition(question.definition, policy))
        elif question.frontend == DOCKERFILE:
            result = await self._dockerfile(question, policy)
        elif question.frontend == GATEWAY and self._images is not None:
            result = await self._images().solve(self, question)
        elif question.frontend:
            raise InvalidParameter(f"failed to find frontend: {question.frontend}")
        else:
            return Result()
        self._answered(question, result)
        if question.evaluate:
            await asyncio.gather(*(ref.stack() for ref in result.all))
        return result

    async def _dockerfile(self, question: Question, policy: SourcePolicy) -> Result:
        inputs = {name: self.definition(definition, policy) for name, definition in question.inputs.items()}
        asker = Asker(self.log, self.session, inputs, self.elsewhere, self._granted, policy)
        try:
            made = await self._frontend.solve(question.attributes, asker)
        except BuildFailed as failed:
            if failed.source is not None:
                self._warn_all(failed.warnings, failed.source)
            raise
        if made.syntax is not None:
            return await self._forward(question, made.syntax, made.source)
        for built in made.built:
            entitlements.check_graph(built.ref.graph, self._granted)  # told before anything is made
            self.scans[built.ref] = built.scans
            for ref in (built.ref, *built.scans.values()):
                self.keep(ref)
        if made.notice:
            self.warn(WarningTold(vertex=self._first, level=1, short=made.notice.encode()))
        self._warn_all(made.warnings, made.source)
        return result_of(made)

    async def _forward(self, question: Question, syntax: Syntax, source: SourceFile) -> Result:
        """Solve a question with the frontend, an image, that the question's file asks for."""
        attributes = {**question.attributes, "source": syntax.image, "cmdline": syntax.command}
        try:
            if self._images is None:
                raise NotImplementedYet(f"the frontend {syntax.image} cannot be run here")
            question = structs.replace(question, frontend=GATEWAY, attributes=attributes)
            result = await self._images().solve(self, question)
            self._answered(question, result)
            return result
        except BuildFailed:
            raise
        except HuskError as error:
            lines = [Location(0, syntax.line, syntax.line)] if syntax.line else []
            raise BuildFailed(error.message, source=source, locations=lines) from error

    def _answered(self, question: Question, result: Result) -> None:
        """Remember what led to refs; the frontend that made them counts, not those that led to it."""
        for ref in result.all:
            self._questions.setdefault(ref, question)

    def question_of(self, ref: Ref) -> Question | None:
        return self._questions.get(ref)

    @property
    def _first(self) -> str:
        return next((told.vertex.digest for told in self.log.told if isinstance(told, VertexTold)), "")

    def _warn_all(self, warnings: Sequence[Warning], source: SourceFile) -> None:
        """Tell what checks of the Dockerfile say, with the vertex that brought it, the first of all.

        What is too much is not told: a file is built, however many warnings it has.
        """
        for warning in warnings:
            if not self._warn(warning, source):
                break

    def _warn(self, warning: Warning, source: SourceFile) -> bool:
        return self._told(
            WarningTold(
                vertex=self._first,
                level=1,
                short=f"{warning.rule}: {warning.message} (line {warning.span.start})".encode(),
                detail=[warning.description.encode()],
                url=warning.url,
                source=source,
                locations=[Location(0, warning.span.start, warning.span.end)],
            )
        )

    def definition(self, definition: Definition, policy: SourcePolicy | None = None) -> Ref:
        entitlements.check_graph(definition.graph, self._granted)
        for_whom = (self.log, self.session, self.elsewhere, self._granted, policy or self.policy)
        ref = Ref(self._solver, definition.graph, definition.edge, *for_whom)
        self.keep(ref)
        return ref

    # --- refs that the client knows by id ----------------------------------------------------------------------------

    def keep(self, ref: Ref) -> str:
        """Its id. It is closed with the job."""
        if (known := self._ids.get(ref)) is not None:
            return known
        if len(self._refs) >= self._limits.refs:
            raise InvalidParameter(f"a build has {self._limits.refs} results at most")
        ref.graph.share(self.known)
        id = secrets.token_hex(13)[:25]
        self._refs[id] = ref
        self._ids[ref] = id
        return id

    def ref(self, id: str) -> Ref:
        if (ref := self._refs.get(id)) is None:
            raise NotFound(f"no such ref: {id}")
        return ref

    def explained(self, error: HuskError) -> HuskError:
        """The same error with the vertex and the lines that it comes from, as far as they are known."""
        explained = of_vertex(error, self.log.told, [ref.graph for ref in self._refs.values()])
        if isinstance(error, StepFailed) and isinstance(explained, BuildFailed):
            explained.left = error.left
        return explained

    def failed_step(self, error: HuskError) -> FailedStep | None:
        """The process that has failed, with refs of what it was given and has left, to look around there."""
        failed = failure.find(error, [ref.graph for ref in self._refs.values()])
        if failed is None:
            return None
        inputs = [self.keep(self.definition(Definition(*made))) for made in failed.inputs]
        outputs = [self.keep(self.definition(Definition(*made))) if made else "" for made in failed.outputs]
        return FailedStep(failed.body, inputs, outputs)

    def child(self, inputs: Mapping[str, Definition]) -> "Job":
        """The same build as a frontend sees it that works for it: its refs and its result are its own."""
        parts = (self._solver, self._frontend, self._images, self.log, self._hold)
        child = Job(
            self.id,
            self.session,
            *parts,
            granted=self._granted,
            elsewhere=lambda _: self.elsewhere,
            policy=lambda _: self.policy,
            limits=self._limits,
        )
        child.inputs = inputs
        child.known = self.known
        child.depth = self.depth + 1
        return child

    # --- a client that works itself ----------------------------------------------------------------------------------

    def give(self, result: Result) -> None:
        if not self._given.done():
            self._given.set_result(result)

    def fail(self, error: HuskError) -> None:
        if not self._given.done():
            self._given.set_exception(error)

    async def given(self) -> Result:
        return await asyncio.shield(self._given)

    async def said(self) -> None:
        """Wait until whoever works for it has said the last word, good or bad."""
        await asyncio.wait([self._given])

    @property
    def has_result(self) -> bool:
        """True once whoever works for the job has said the last word, good or bad."""
        return self._given.done()

    @property
    def has_failed(self) -> bool:
        return self._given.done() and not self._given.cancelled() and self._given.exception() is not None

    def warn(self, warning: WarningTold) -> None:
        """InvalidParameter for more than anybody reads: all of it is kept, and told to everybody who follows."""
        if not self._told(warning):
            limit = f"{self._limits.warnings} warnings at most, of {self._limits.warned >> 20} MiB"
            raise InvalidParameter(f"a build has {limit}")

    def _told(self, warning: WarningTold) -> bool:
        self._warned += warning.size
        self._warnings += 1
        if self._warnings > self._limits.warnings or self._warned > self._limits.warned:
            return False
        self.log.warn(warning)
        return True

    async def close(self, keep: Collection[object] = ()) -> None:
        """Let go of all refs but those that somebody else keeps, though whoever waits be cancelled meanwhile."""
        self._given.cancel()
        await self._ending.to_its_end(self._close(keep), "end of a job")

    async def _close(self, keep: Collection[object]) -> None:
        await self.containers.close()
        refs, self._refs, self._ids = self._refs, {}, {}
        await asyncio.gather(*(ref.close() for ref in refs.values() if not any(ref is one for one in keep)))
        if self._owns_log:
            if self.elsewhere is not None:
                await self.elsewhere.close()
            self.log.close()


class Jobs:
    """All that are under way."""

    def __init__(
        self,
        solver: Solver,
        frontend: DockerfileFrontend,
        images: Callable[[], ImageFrontends] | None = None,
        hold: Hold | None = None,
        remains: Remains | None = None,
        limits: JobLimits = LIMITS,
    ) -> None:
        self._solver = solver
        self._frontend = frontend
        self._images = images
        self._hold = hold
        self._remains = remains
        self._limits = limits
        self._ending = Tasks()
        self._jobs: dict[str, Job] = {}
        self._ended: dict[str, None] = {}  # nobody need wait for these, the last ones
        self._waiting: dict[str, set[asyncio.Future[Job]]] = {}

    async def begin(
        self,
        id: str,
        session: Session | None,
        granted: Collection[str] = (),
        elsewhere: Callable[[Asker], Elsewhere | None] | None = None,
        policy: Callable[[Asker], SourcePolicy] | None = None,
    ) -> Job:
        """`granted` is what the client's user allows the build's steps, by BuildKit's names."""
        if not id:
            raise InvalidParameter("a build needs an id")
        if id in self._jobs:
            raise Conflict(f"job ID {id} exists")
        parts = (self._solver, self._frontend, self._images)
        job = Job(
            id,
            session,
            *parts,
            hold=self._hold,
            granted=granted,
            elsewhere=elsewhere,
            policy=policy,
            limits=self._limits,
        )
        self._jobs[id] = job
        self._ended.pop(id, None)
        # Who waits gets it, though it may end before they come to it.
        for waiter in self._waiting.pop(id, ()):
            if not waiter.done():
                waiter.set_result(job)
        return job

    async def end(self, job: Job) -> None:
        self._jobs.pop(job.id, None)
        self._ended[job.id] = None
        while len(self._ended) > _MOST_ENDED:
            del self._ended[next(iter(self._ended))]
        # A client that hangs up cancels what it has begun more than once.
        await self._ending.to_its_end(self._end(job), "end of a job")

    async def _end(self, job: Job) -> None:
        await job.close()
        if self._remains is not None:
            await self._remains.clear(job.session)

    async def get(self, id: str, *, patience: float = _PATIENCE) -> Job:
        """A job, which may be about to begin."""
        if id in self._jobs:
            return self._jobs[id]
        if id in self._ended:
            raise NotFound(f"no such job {id}")
        waiter: asyncio.Future[Job] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(id, set()).add(waiter)
        try:
            async with asyncio.timeout(patience):
                return await waiter
        except TimeoutError:
            raise NotFound(f"no such job {id}") from None
        finally:
            if others := self._waiting.get(id):
                others.discard(waiter)
                if not others:
                    del self._waiting[id]
