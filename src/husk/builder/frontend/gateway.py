"""Frontends that are images: a program runs in a container and asks us, over its standard streams, for what it needs
to make a result.

    resolve the image ─> run its entrypoint ─> serve its calls (`Bridge`) ─> the result that it returns

It sees the client's options in its environment. It has nothing of ours but its own file system and a network like that
of any step; it ends with the build, and when it hangs up. How the calls look is the edge's business.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

from husk.aio.tasks import Tasks
from husk.builder.dockerfile.options import BaseImage
from husk.builder.graph.graph import Definition, Graph
from husk.builder.graph.operations import Edge, Exec, ExecMount, Operation, ProcessSpec, Source
from husk.builder.jobs.failure import MissingCapability
from husk.builder.jobs.jobs import Job
from husk.builder.jobs.results import Question, Result
from husk.builder.solver.asking import Asker, ShownWork
from husk.builder.solver.sessions import Session
from husk.builder.sources.images import ImageSource
from husk.builder.steps.held import ProcessTalk, StepContainer
from husk.engine.model.container_config import ContainerConfig
from husk.errors import HuskError, InvalidParameter, NotImplementedYet
from husk.registry import reference as references
from husk.registry.manifest import Platform, host_platform
from husk.runtime.supervise.stdio import Pipes

NO_NETWORK = "moby.buildkit.frontend.network.none"
CAPABILITIES = "moby.buildkit.frontend.caps"
INPUTS = "moby.buildkit.frontend.inputs"
_TRUE = ("1", "t", "T", "true", "TRUE", "True")
# What is told of what a frontend that failed wrote to its standard error.
_LONGEST_COMPLAINT = 2048


class GatewayLimits(NamedTuple):
    """Limits of frontends that are images."""

    #: A frontend may call a frontend that is an image, and that one another.
    deepest: int = 8
    #: From one end of a conversation to the other, in seconds; less if there is nothing to wait for.
    patience: float = 5.0
    short_patience: float = 1.0


LIMITS = GatewayLimits()


class Streams:
    """A program's standard streams as one connection."""

    def __init__(self, pipes: Pipes) -> None:
        self._pipes = pipes

    async def read(self) -> bytes:
        return await self._pipes.output.read()

    async def write(self, data: bytes) -> None:
        await self._pipes.input.write(data)

    async def finish(self) -> None:
        self._pipes.input.close()

    def abort(self) -> None:
        self._pipes.input.close()


class Bridge(Protocol):
    """The part that answers a frontend's calls: `husk.builder.protocol`."""

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that tell every frontend about us."""
        ...

    async def serve(self, streams: Streams, job: Job, /) -> None:
        """Answer calls until the frontend hangs up."""
        ...


class StepContainers(Protocol):
    def held(
        self, body: Exec, inputs: Sequence[str], session: Session | None, platform: Platform | None = None
    ) -> AbstractAsyncContextManager[StepContainer]: ...


class GatewayFrontend:
    def __init__(self, images: ImageSource, steps: StepContainers, limits: GatewayLimits = LIMITS) -> None:
        self._limits = limits
        self._images = images
        self._steps = steps
        # There is none before the first client has come by the protocol.
        self.bridge: Bridge | None = None

    async def solve(self, job: Job, question: Question) -> Result:
        source = question.attributes.get("source", "")
        if not source:
            raise InvalidParameter("no source specified for gateway")
        if job.depth >= self._limits.deepest:
            raise InvalidParameter(f"frontends that call each other: more than {self._limits.deepest} of them")
        if self.bridge is None:
            raise NotImplementedYet("frontends that are images are not available to the classic API")
        image = await self._image(job, source)
        config = image.document.config or ContainerConfig()
        check_capabilities(config.labels, question)
        ref = job.definition(_definition(image))
        child = job.child(question.inputs)
        kept: list[object] = []
        try:
            body = exec_of(config, {**_options(question.attributes), **self._environment(job)})
            async with self._steps.held(body, [await ref.stack()], job.session, None) as held:
                result = await _Conversation(self.bridge, child, body, source, self._limits).carry_out(held)
            kept = [job.keep(one) and one for one in result.all]
            return result
        finally:
            await child.close(kept)

    async def _image(self, job: Job, source: str) -> BaseImage:
        reference = references.parse(source).tagged()
        with ShownWork(Asker(job.log, job.session), f"resolve image config for docker-image://{reference}") as watcher:
            name = await job.policy.admit_image(str(reference), host_platform())
            return await self._images.look_up(name, host_platform(), False, watcher)

    def _environment(self, job: Job) -> dict[str, str]:
        assert self.bridge is not None
        return {"BUILDKIT_SESSION_ID": job.session.id if job.session else "", **self.bridge.environment}


class _Conversation:
    """One run of a frontend."""

    def __init__(self, bridge: Bridge, job: Job, body: Exec, source: str, limits: GatewayLimits) -> None:
        self._limits = limits
        self._bridge = bridge
        self._job = job
        self._body = body
        self._source = source
        self._tasks = Tasks()
        self._complaint = b""

    async def carry_out(self, held: StepContainer) -> Result:
        with Pipes() as pipes:
            try:
                return await self._talk(held.talk(self._body.process, pipes), pipes)
            finally:
                await self._tasks.cancel_all()

    async def _talk(self, talk: ProcessTalk, pipes: Pipes) -> Result:
        running = self._tasks.spawn(talk.run(), "frontend", awaited=True)
        serving = self._tasks.spawn(self._serve(pipes), "calls of a frontend", awaited=True)
        complaining = self._tasks.spawn(self._listen(pipes), "errors of a frontend", awaited=True)
        given = self._tasks.spawn(self._job.said(), "result of a frontend", awaited=True)
        await asyncio.wait([running, serving, given], return_when=asyncio.FIRST_COMPLETED)
        # Who has said the last word is about to leave, and what has left has its last words read.
        nearly_done = running.done() or self._job.has_result
        patience = self._limits.patience if nearly_done else self._limits.short_patience
        await asyncio.wait([running, serving, complaining], timeout=patience)
        if not running.done() and not self._job.has_result:
            raise InvalidParameter(f"the frontend {self._source} hung up without a result{self._said}")
        code = await running if running.done() else 0
        if code and not self._job.has_failed:
            raise InvalidParameter(f"the frontend {self._source} failed: exit code: {code}{self._said}")
        if not self._job.has_result:
            raise InvalidParameter(f"the frontend {self._source} ended without a result{self._said}")
        return await self._job.given()

    async def _serve(self, pipes: Pipes) -> None:
        with contextlib.suppress(OSError, HuskError):
            await self._bridge.serve(Streams(pipes), self._job)

    async def _listen(self, pipes: Pipes) -> None:
        while data := await pipes.errors.read():
            self._complaint = (self._complaint + data)[-_LONGEST_COMPLAINT:]

    @property
    def _said(self) -> str:
        text = self._complaint.decode(errors="replace").strip()
        return f": {text}" if text else ""


def exec_of(config: ContainerConfig, environment: Mapping[str, str]) -> Exec:
    """The process of a frontend, as its image describes it."""
    process = ProcessSpec(
        args=list(config.entrypoint or ["/run"]),
        env=[*config.env, *(f"{name}={value}" for name, value in environment.items())],
        cwd=config.working_dir or "/",
    )
    without_network = (config.labels or {}).get(NO_NETWORK) in _TRUE
    return Exec(
        process=process, mounts=[ExecMount(target="/", input=0)], network="none" if without_network else "sandbox"
    )


def check_capabilities(labels: Mapping[str, str] | None, question: Question) -> None:
    """MissingCapability if the client needs something that the frontend does not say it can do."""
    known = _names((labels or {}).get(CAPABILITIES, ""))
    wanted = _names(question.attributes.get("frontend.caps", "")) | ({INPUTS} if question.inputs else set())
    for name in sorted(wanted - known):
        raise MissingCapability(name)


def _names(text: str) -> set[str]:
    """`a,b+forward`: what is behind a plus sign says how it is asked for."""
    return {name.partition("+")[0].strip() for name in text.split(",") if name.strip()}


def _options(attributes: Mapping[str, str]) -> dict[str, str]:
    return {
        f"BUILDKIT_FRONTEND_OPT_{number}": f"{name}={value}" for number, (name, value) in enumerate(attributes.items())
    }


def _definition(image: BaseImage) -> Definition:
    graph = Graph()
    identifier = f"docker-image://{image.reference}"
    edge: Edge = graph.add(Operation(Source(identifier), [], host_platform()), name=identifier)
    return Definition(graph, edge)
