"""The daemon's side: a Dockerfile is opened in a worker, and asked about."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Protocol, TypeVar

import msgspec
from msgspec import structs

from husk.builder.dockerfile.converted import Converted, ShownStep
from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.options import BaseImage, NamedContext, Options, StageAnswer, StageQuestion
from husk.builder.frontend.reading import graphs, messages
from husk.builder.frontend.reading.messages import Context
from husk.builder.graph.graph import Graph, SourceFile
from husk.builder.graph.llb_write import source_info
from husk.builder.jobs.failure import UnknownQuestion
from husk.builder.store.workers.parser import Parser
from husk.errors import HuskError, InvalidParameter, SystemFault
from husk.registry.manifest import Platform

NO_ANSWER = "the process that reads it has said what is no answer"
# What all that is made of one file, for all its platforms, may take here: the worker has forgotten it by then.
MOST_WEIGHT = 256 << 20
MODULE = "husk.builder.frontend.reading.answerer"
# So many images of a Dockerfile are looked up together: thousands of tasks begin before anybody else has a turn.
AT_ONCE = 100

Kind = TypeVar("Kind", bound=messages.Answer)


class Parsers(Protocol):
    """Workers that read foreign text: `husk.builder.store.workers.parser`."""

    def expect(self, module: str) -> None: ...

    def begin(self, module: str) -> AbstractAsyncContextManager[Parser]: ...


class Sources(Protocol):
    """The images and contexts that a Dockerfile asks for and that are not in it."""

    async def image(self, name: str, platform: Platform) -> BaseImage: ...

    async def named_context(self, name: str, platform: Platform) -> NamedContext | None: ...


class Dockerfiles:
    def __init__(self, parsers: Parsers, most_weight: int = MOST_WEIGHT) -> None:
        self._parsers = parsers
        self._most_weight = most_weight

    def expect(self) -> None:
        """One will come soon."""
        self._parsers.expect(MODULE)

    @asynccontextmanager
    async def open(self, text: bytes, ignored: bytes = b"") -> AsyncIterator["OpenDockerfile"]:
        """The file, and what is left out of its context, in a worker that ends with the block."""
        async with self._parsers.begin(MODULE) as parser:
            file = OpenDockerfile(parser, self._most_weight)
            await file.open(text, ignored)
            yield file


class OpenDockerfile:
    def __init__(self, parser: Parser, most_weight: int) -> None:
        self._parser = parser
        self._most_weight = most_weight
        self._patterns: list[str] = []
        self._weight = 0
        self._complaint = ""

    async def open(self, text: bytes, ignored: bytes) -> None:
        opened = await self._ask(messages.Open(text, ignored), messages.Opened)
        self._patterns, self._complaint = opened.patterns, opened.complaint

    @property
    def patterns(self) -> list[str]:
        """The patterns of what is left out of the file's context. InvalidParameter if that cannot be told."""
        if self._complaint:
            raise InvalidParameter(f".dockerignore: {self._complaint}")
        return self._patterns

    async def leaves_out(self, names: Sequence[str]) -> list[str]:
        """Those that are left out."""
        return (await self._ask(messages.LeavesOut(list(names)), messages.Left)).names if self.patterns else []

    async def outline(self, target: str) -> messages.Outlined:
        """Ask for the outline that the classic builder tells first. DockerfileError for a file that cannot be read."""
        return await self._ask(messages.AskOutline(target), messages.Outlined)

    async def syntax(self, build_args: Mapping[str, str]) -> messages.SyntaxTold:
        """Another frontend that it asks for."""
        return await self._ask(messages.AskSyntax(dict(build_args)), messages.SyntaxTold)

    async def convert(self, options: Options, context: Context, sources: Sources, file: SourceFile) -> Converted:
        """DockerfileError for what cannot be built; `file` is what clients are shown."""
        rest = _Rest(Graph([file]))
        question = messages.Convert(_sent(options), context, file.name)
        made = await self._ask(question, messages.Converted, sources, rest)
        return Converted(rest.graph, made.root, made.image, made.warnings, rest.steps, made.args, made.scans)

    async def answer(
        self, request: str, options: Options, context: Context, sources: Sources, file: SourceFile
    ) -> dict[str, bytes]:
        """Answer a question of `docker build --call`."""

        came = source_info(structs.replace(file, content=b"")).definition or b""
        question = messages.Ask(request, _sent(options), context, file.name, came)
        return (await self._ask(question, messages.Answered, sources)).answer

    async def _ask(
        self, question: messages.Question, kind: type[Kind], sources: Sources | None = None, rest: "_Rest | None" = None
    ) -> Kind:
        while True:
            answer = None
            async with aclosing(self._parser.ask(messages.encode(question))) as pieces:
                try:
                    async for piece in pieces:
                        if answer is None:
                            answer = messages.decode_answer(piece)
                            self._weight += len(piece)
                        elif rest is not None:
                            self._weight += rest.take(answer, piece)
                        if self._weight > self._most_weight:
                            limit = f"{self._most_weight >> 20} MiB"
                            raise InvalidParameter(f"what is made of it takes more than {limit}")
                except msgspec.DecodeError:
                    raise SystemFault(NO_ANSWER) from None
            match answer:
                case messages.Wrong(message, span, warnings):
                    error = DockerfileError(message, span)
                    error.warnings = warnings
                    raise error
                case messages.Refused(message, name):
                    raise UnknownQuestion(name) if name else InvalidParameter(message)
                case messages.Asking(wanted) if sources is not None:
                    question = messages.Told(await look_up(sources, wanted))
                case _ if isinstance(answer, kind):
                    return answer
                case _:
                    raise SystemFault(NO_ANSWER)


class _Rest:
    """The pieces that come behind the answer to a conversion: steps, then operations."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.steps: list[ShownStep] = []

    def take(self, answer: messages.Answer, piece: bytes) -> int:
        """Take a piece, and return about how many bytes it takes."""
        if isinstance(answer, messages.Converted) and len(self.steps) < answer.steps:
            self.steps += messages.decode_steps(piece)
            return len(piece)
        return graphs.add(self.graph, piece)


def _sent(options: Options) -> Options:
    return structs.replace(options, ignore=None)


async def look_up(sources: Sources, wanted: Sequence[StageQuestion]) -> list[StageAnswer]:
    """Answer each with an image, or with what has its name among the contexts that a client gave names to; some of
    them at the same time."""
    found: list[StageAnswer] = []
    for start in range(0, len(wanted), AT_ONCE):
        found += await asyncio.gather(*(_look_up(sources, one) for one in wanted[start : start + AT_ONCE]))
    return found


async def _look_up(sources: Sources, wanted: StageQuestion) -> StageAnswer:
    try:
        for name in wanted.contexts:
            if context := await sources.named_context(name, wanted.platform):
                return StageAnswer(context=context, name=name)
        return StageAnswer(await sources.image(wanted.image, wanted.platform)) if wanted.image else StageAnswer()
    except HuskError as error:
        return StageAnswer(error=str(error) or type(error).__name__)
