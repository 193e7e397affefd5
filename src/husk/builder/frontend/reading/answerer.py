"""The worker's side: reads one Dockerfile, and says what the daemon asks about it (`messages`)."""

import json
import types
from collections.abc import Coroutine, Generator, Iterator, Sequence
from typing import Any

from msgspec import structs

from husk.builder.dockerfile import classic, syntax
from husk.builder.dockerfile.checks import Checks
from husk.builder.dockerfile.convert import convert
from husk.builder.dockerfile.converted import Converted
from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.options import BaseImage, Options, RemoteContext, StageAnswer, StageQuestion
from husk.builder.frontend.reading import graphs, messages
from husk.builder.frontend.reading.answers import answer_to
from husk.builder.frontend.reading.messages import encode
from husk.builder.graph.graph import SourceFile
from husk.builder.graph.operations import Source
from husk.builder.jobs.failure import UnknownQuestion
from husk.engine.model.container_config import ContainerConfig
from husk.engine.model.image import ImageConfig, RootFS
from husk.errors import HuskError
from husk.text import dockerignore
from husk.text.globs import BadPattern

_NO_TEXT = "the Dockerfile has bytes that are no UTF-8 where only text can stand"


class Answerer:
    def __init__(self) -> None:
        self._text = ""
        self._ignore: dockerignore.Ignore | None = None
        self._checks: Checks | None = None
        self._work: Coroutine[Any, Any, Converted | dict[str, bytes]] | None = None

    def turn(self, question: bytes) -> Iterator[bytes]:
        """All that is said to a question is made before any of it is said: it may be that there is something wrong."""
        try:
            yield from list(self._answer(messages.decode_question(question)))
        except DockerfileError as error:
            warnings = self._checks.warnings if self._checks else []
            yield encode(messages.Wrong(_printable(str(error)), error.span, warnings))
        except UnknownQuestion as error:
            yield encode(messages.Refused(error.message, error.name))
        except HuskError as error:
            yield encode(messages.Refused(_printable(error.message)))
        except UnicodeEncodeError:
            yield encode(messages.Wrong(_NO_TEXT))

    def _answer(self, question: messages.Question) -> Iterator[bytes]:
        match question:
            case messages.Open(text, ignored):
                yield encode(self._open(text, ignored))
            case messages.LeavesOut(names):
                rules = self._ignore
                yield encode(messages.Left([one for one in names if rules and rules.leaves_out(one)]))
            case messages.AskOutline(target):
                yield encode(messages.Outlined(*classic.until(classic.read(self._text), target)))
            case messages.AskSyntax(build_args):
                yield encode(self._syntax(build_args))
            case messages.Convert(options, context, file_name):
                sources = _Sources(context)
                self._checks = checks = Checks()
                options = self._with_ignore(options)
                self._work = convert(self._text, options, sources, file_name=file_name, checks=checks)
                yield from self._go_on(None)
            case messages.Ask(request, options, context, file_name, definition):
                text = self._text.encode("utf-8", "surrogateescape")
                file = SourceFile(file_name, text, definition=definition)
                sources = _Sources(context)
                self._work = answer_to(request, self._text, self._with_ignore(options), sources, file)
                yield from self._go_on(None)
            case messages.Told(found):
                yield from self._go_on(found)

    def _open(self, text: bytes, ignored: bytes) -> messages.Opened:
        self._text = text.decode("utf-8", "surrogateescape")
        patterns = dockerignore.read(ignored.decode("utf-8", "replace"))
        try:
            self._ignore = dockerignore.Ignore(patterns)
        except BadPattern as error:
            return messages.Opened(patterns, str(error))
        return messages.Opened(patterns)

    def _with_ignore(self, options: Options) -> Options:
        return structs.replace(options, ignore=self._ignore)

    def _syntax(self, build_args: dict[str, str]) -> messages.SyntaxTold:
        asked = syntax.asked_for(self._text, build_args)
        if asked is None:
            return messages.SyntaxTold()
        if syntax.is_own(asked.image):
            return messages.SyntaxTold(notice=syntax.notice(asked.image))
        return messages.SyntaxTold(asked)

    def _go_on(self, found: Sequence[StageAnswer] | None) -> Iterator[bytes]:
        """Work until something must be known that is not in the file, or to the end."""
        assert self._work is not None
        try:
            wanted: list[StageQuestion] = self._work.send(found)
        except StopIteration as end:
            yield from _pieces(end.value)
        else:
            yield encode(messages.Asking(wanted))


def warm_up() -> None:
    """Read a file: what is made for the first one (decoders, regular expressions) is there for all others then."""
    answerer = Answerer()
    context = messages.Context(Source("local://context"), narrowed=True)
    base = BaseImage("docker.io/library/a", ImageConfig(config=ContainerConfig(), rootfs=RootFS(diff_ids=["sha256:0"])))
    for question in (
        messages.Open(b"FROM a\nENV b=c\nCOPY d e\nRUN f\nCMD g\n", b"*.o\n"),
        messages.AskSyntax({}),
        messages.Convert(Options(), context, "Dockerfile"),
        messages.Told([StageAnswer(base)]),
    ):
        for _ in answerer.turn(encode(question)):
            pass


def _pieces(made: Converted | dict[str, bytes]) -> Iterator[bytes]:
    if isinstance(made, dict):
        yield encode(messages.Answered(made))
        return
    yield encode(messages.Converted(made.root, made.image, made.warnings, len(made.steps), made.args, made.scans))
    yield from messages.encode_steps(made.steps)
    yield from graphs.pieces(made.graph)


class _Sources:
    """The contexts and images that the file asks for while it is converted; the daemon is asked for them."""

    def __init__(self, context: messages.Context) -> None:
        self._context = context

    async def look_up(self, wanted: Sequence[StageQuestion]) -> Sequence[StageAnswer]:
        return [_narrowed(one) for one in await _say(list(wanted))]

    def main_context(self, paths: list[str]) -> Source | RemoteContext:
        context = self._context.remote or self._context.source or Source("")
        if isinstance(context, Source) and self._context.narrowed and paths:
            followed = json.dumps([path.lstrip("/") for path in paths])
            return structs.replace(context, attributes={**context.attributes, "local.followpaths": followed})
        return context


def _narrowed(found: StageAnswer) -> StageAnswer:
    """A context of a name without what its own file leaves out."""
    context = found.context
    if context is None or context.source is None or not context.ignored:
        return found
    patterns = dockerignore.read(context.ignored.decode("utf-8", "replace"))
    try:
        dockerignore.Ignore(patterns)
    except BadPattern as error:
        return StageAnswer(error=f"{found.name}: .dockerignore: {error}")
    attributes = {**context.source.attributes, "local.excludepatterns": json.dumps(patterns)}
    source = structs.replace(context.source, attributes=attributes)
    return structs.replace(found, context=structs.replace(context, source=source, ignored=b""))


@types.coroutine
def _say(wanted: list[StageQuestion]) -> Generator[list[StageQuestion], Sequence[StageAnswer], Sequence[StageAnswer]]:
    """Out of the conversion, to whoever drives it; its answer comes back."""
    return (yield wanted)


def _printable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
