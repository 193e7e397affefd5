"""The messages between the daemon and the worker that reads Dockerfiles: msgpack of these."""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

from husk.builder.dockerfile.converted import ShownStep, UsedArg
from husk.builder.dockerfile.options import Options, RemoteContext, StageAnswer, StageQuestion
from husk.builder.dockerfile.rules import Span, Warning
from husk.builder.dockerfile.syntax import Syntax
from husk.builder.graph.operations import Edge, Source
from husk.engine.model.image import ImageConfig
from husk.text.encoded import encoded

# --- questions -------------------------------------------------------------------------------------------------------


class Open(Struct, frozen=True, tag="open"):
    """A file, and what tells which files of its context are left out. Answer: `Opened`."""

    text: bytes
    ignored: bytes = b""


class LeavesOut(Struct, frozen=True, tag="leaves-out"):
    """A question for those of these names that the context leaves out. Answer: `Left`."""

    names: list[str]


class AskOutline(Struct, frozen=True, tag="outline"):
    """A question for the way to a target, as the classic builder tells it. Answer: `Outlined`."""

    target: str


class AskSyntax(Struct, frozen=True, tag="syntax"):
    """A question for the frontend that the file asks for. Answer: `SyntaxTold`."""

    build_args: dict[str, str]


class Context(Struct, frozen=True):
    """The build context. One that can be `narrowed` is asked for the paths that are needed, where those are known."""

    source: Source | None = None
    remote: RemoteContext | None = None
    narrowed: bool = False


class Convert(Struct, frozen=True, tag="convert"):
    """Answer: `Asking`, any number of times, then `Converted` with pieces of steps, and a piece for each operation."""

    options: Options
    context: Context
    file_name: str


class Ask(Struct, frozen=True, tag="ask"):
    """A question about the file, by its name. Answer: `Asking`, any number of times, then `Answered`.

    `definition` says how the file came, in the words that clients know."""

    request: str
    options: Options
    context: Context
    file_name: str
    definition: bytes = b""


class Told(Struct, frozen=True, tag="told"):
    """The answers to `Asking`, in its order."""

    found: list[StageAnswer]


Question = Open | LeavesOut | AskOutline | AskSyntax | Convert | Ask | Told

# --- answers ---------------------------------------------------------------------------------------------------------


class Opened(Struct, frozen=True, tag="opened"):
    """The patterns of what is left out; `complaint` is what is wrong with them."""

    patterns: list[str]
    complaint: str = ""


class Left(Struct, frozen=True, tag="left"):
    names: list[str]


class SyntaxTold(Struct, frozen=True, tag="syntax-told"):
    """Another frontend that the file asks for, or none; `notice` is a warning about one that is our own."""

    syntax: Syntax | None = None
    notice: str = ""


class Asking(Struct, frozen=True, tag="asking"):
    wanted: list[StageQuestion]


class Converted(Struct, frozen=True, tag="converted"):
    root: Edge | None
    image: ImageConfig
    warnings: list[Warning]
    steps: int  # how many come behind it, `STEPS_AT_ONCE` in a piece, before the operations
    args: list[UsedArg]
    scans: dict[str, Edge | None]


class Outlined(Struct, frozen=True, tag="outlined"):
    """The instructions up to the first FROM, and the number of all."""

    first: list[str]
    count: int
    args: list[str]  # those before the first FROM


class Answered(Struct, frozen=True, tag="answered"):
    answer: dict[str, bytes]


class Wrong(Struct, frozen=True, tag="wrong"):
    """Something in the file that cannot be built, and where it stands."""

    message: str
    span: Span | None = None
    warnings: list[Warning] = []


class Refused(Struct, frozen=True, tag="refused"):
    """A request that is wrong, whatever the file says; `question`: one that nobody here knows."""

    message: str
    question: str = ""


Answer = Opened | Left | Outlined | SyntaxTold | Asking | Converted | Answered | Wrong | Refused

# A piece is decoded while nobody else has a turn.
STEPS_AT_ONCE = 200

_encoder = msgspec.msgpack.Encoder()
_questions: "msgspec.msgpack.Decoder[Question]" = msgspec.msgpack.Decoder(Question)
_steps: "msgspec.msgpack.Decoder[list[ShownStep]]" = msgspec.msgpack.Decoder(list[ShownStep])
_answers: "msgspec.msgpack.Decoder[Answer]" = msgspec.msgpack.Decoder(Answer)


def encode(message: Question | Answer) -> bytes:
    return encoded(_encoder, message)


def decode_question(data: bytes) -> Question:
    return _questions.decode(data)


def decode_answer(data: bytes) -> Answer:
    return _answers.decode(data)


def encode_steps(steps: Sequence[ShownStep]) -> Iterator[bytes]:
    for start in range(0, len(steps), STEPS_AT_ONCE):
        yield _encoder.encode(steps[start : start + STEPS_AT_ONCE])


def decode_steps(piece: bytes) -> list[ShownStep]:
    return _steps.decode(piece)
