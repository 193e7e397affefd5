"""One call as a handler gets it: the engine, the request's parts as dockerd reads them, and ways to answer."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from husk.aio.once import load
from husk.aio.tasks import Tasks
from husk.api.calls.errors import JSON_TYPE
from husk.api.http.errors import BadRequest, BodyCutOff
from husk.api.http.limits import HttpLimits
from husk.api.http.request import Query, Request
from husk.api.http.response import Response, StreamedResponse, fields
from husk.api.versioning import CURRENT, MINIMUM, Version
from husk.composition import Engine
from husk.engine.model.clock import parse_timestamp
from husk.errors import InvalidParameter
from husk.registry.manifest import Platform
from husk.text.documents import MalformedDocument, decode
from husk.text.gojson import Document, Reader, encode, parse_document

if TYPE_CHECKING:
    from husk.api.calls.encoded import EncodedAnswers
    from husk.builder.protocol.history import BuildHistory
    from husk.builder.protocol.server import BuildkitServer

T = TypeVar("T")

JSON = "application/json"
_SEND_BUFFER = 1 << 20
# Values of a document that are read while others wait.
_MANY = 5000
_FALSE = frozenset({"", "0", "no", "false", "none"})


class Common:
    """The state that all calls of one edge share."""

    __slots__ = ("_answers", "_history", "buildkit", "changes", "engine", "fields", "json_fields", "limits", "minimum")

    def __init__(self, engine: Engine, minimum: Version = MINIMUM, limits: HttpLimits | None = None) -> None:
        self.engine = engine
        self._answers: EncodedAnswers | None = None
        self.minimum = minimum  # the oldest that this daemon serves
        self.changes = Tasks()  # who owns what goes on when the client has gone
        self.limits = limits or HttpLimits()
        self.fields = fields(
            common_headers(engine.system.version, engine.config.experimental)
        )  # what every answer carries
        self.json_fields = JSON_TYPE + self.fields
        self._history: BuildHistory | None = None  # of builds, from the first on
        self.buildkit: BuildkitServer | None = None  # from the first build by its protocol on

    @property
    def answers(self) -> "EncodedAnswers":
        """Those that are kept; what shows containers and images is loaded with the first of them."""
        if self._answers is None:
            # A door: documents of containers and images, of which a start needs none.
            from husk.api.calls.encoded import EncodedAnswers

            self._answers = EncodedAnswers(self.engine)
        return self._answers

    async def history(self) -> "BuildHistory":
        """That of builds, one for all connections and both doors; nothing of connections is loaded with it."""
        builder = await self.engine.builder.get()
        if self._history is None:
            await load("husk.builder.protocol.history")
            # A door to a wing: only builds have a history.
            from husk.builder.protocol.history import BuildHistory

            self._history = self._history or BuildHistory(builder.kept)
        return self._history


class Call:
    """One request to one operation."""

    __slots__ = ("_wide", "argument", "common", "engine", "request", "version")

    def __init__(self, common: Common, request: Request, version: Version, argument: str) -> None:
        self.common = common
        self.engine = common.engine
        self.request = request
        self.version = version
        self.argument = argument  # what stands for {id} or {name} in the path
        self._wide = False  # has its document many values?

    @property
    def query(self) -> Query:
        return self.request.query

    def text(self, name: str, default: str = "") -> str:
        return self.query.get(name, default)

    def file_name(self, name: str) -> str:
        """The name of a file, whose bytes need not be text; `os.fsencode` gives them back."""
        return self.query.file_name(name)

    def flag(self, name: str, default: bool = False) -> bool:
        """dockerd's booleans: everything is true but "", 0, no, false and none."""
        query = self.query
        return query.get(name).strip().lower() not in _FALSE if name in query else default

    def integer(self, name: str) -> int | None:
        """None when absent or empty."""
        value = self.query.get(name)
        if not value:
            return None
        # int() would also take " 5", "1_000" and other scripts' digits
        if not (value.isascii() and value.lstrip("+-").isdigit() and len(value) <= 19):
            raise InvalidParameter(f"invalid value {value!r} for {name}: not a number")
        try:
            return int(value)
        except ValueError as error:
            raise InvalidParameter(f"invalid value {value!r} for {name}: not a number") from error

    def object_version(self) -> int:
        """The version of a cluster object that a change starts from."""
        number = self.integer("version")
        if number is None:
            raise InvalidParameter("invalid version '': a number is needed")
        return number

    def timestamp(self, name: str) -> int | None:
        try:
            return parse_timestamp(self.query.get(name))
        except InvalidParameter as error:
            raise InvalidParameter(f'invalid value for "{name}": {error.message}') from error

    async def document(self) -> Document | None:
        """The JSON object in the body, None without a body; dockerd's rules for the Content-Type."""
        request = self.request
        content_type = request.header("content-type")
        if request.body is None:
            if content_type:
                _check_content_type(content_type)
            return None
        _check_content_type(content_type)
        data = await request.body.document(self.common.limits.document_size)
        if not data.strip():
            raise InvalidParameter("invalid JSON: got EOF while reading request body")
        commas, most = data.count(b","), self.common.limits.document_values
        if commas >= most:
            raise InvalidParameter(f"invalid JSON: it has more than {most} values")
        self._wide = commas > _MANY
        return await asyncio.to_thread(parse_document, data) if self._wide else parse_document(data)

    async def read(self, document: Document, reader: Reader[T]) -> T:
        """Read a document. One with many values is read in a thread, for that takes a while."""
        return await asyncio.to_thread(reader.read, document) if self._wide else reader.read(document)

    async def upload(self, largest: int) -> AsyncIterator[bytes]:
        """The request's body as it arrives, in pieces of up to `largest`; all of it, also if the client has gone."""
        if self.request.body is None:
            return
        try:
            async for piece in self.request.body.pieces(largest):
                yield piece
        except BodyCutOff:
            raise InvalidParameter("unexpected EOF: the client left before it had sent all") from None
        except BadRequest as error:
            raise InvalidParameter(error.reason) from None

    async def body(self, reader: Reader[T]) -> T:
        return await self.read(await self.document() or {}, reader)

    def json(self, value: object, status: int = 200) -> Response:
        return Response(status, encode(value) + b"\n", self.common.json_fields)

    def encoded(self, data: bytes) -> Response:
        """200 with a document that is JSON already, and ends with its line."""
        return Response(200, data, self.common.json_fields)

    def empty(self, status: int = 204) -> Response:
        return Response(status, b"", self.common.fields)

    def stream(self, content_type: str, headers: Mapping[str, str] | None = None) -> StreamedResponse:
        """Answer 200 and the headers at once; the body follows through `write`."""
        return StreamedResponse(self.request, self.fields(content_type, headers))

    def archive(self, content_type: str, headers: Mapping[str, str] | None = None) -> StreamedResponse:
        """As `stream`, for a long body: the kernel holds more of it, so that nobody waits for each piece."""
        response = self.stream(content_type, headers)
        self.request.connection.send_buffer(_SEND_BUFFER)
        return response

    def fields(self, content_type: str, headers: Mapping[str, str] | None = None) -> bytes:
        """The headers of an answer as they travel."""
        return fields({"Content-Type": content_type, **(headers or {})}) + self.common.fields


def platform_parameter(text: str) -> Platform | None:
    """A platform as newer parts of the API write it: `{"os": "linux", "architecture": "arm"}`."""
    if not text:
        return None
    try:
        return decode(text, Platform)
    except MalformedDocument as error:
        raise InvalidParameter(f"invalid platform {text!r}: expected JSON with os and architecture: {error}") from error


def platform_parameters(call: Call, name: str) -> list[Platform]:
    """All platforms that a query names, one each time."""
    return [platform for text in call.query.getall(name) if (platform := platform_parameter(text)) is not None]


def common_headers(server_version: str, experimental: bool = False) -> dict[str, str]:
    """Return the headers that dockerd sends with every response."""
    return {
        "Api-Version": str(CURRENT),
        "Docker-Experimental": "true" if experimental else "false",
        "Ostype": "linux",
        "Server": f"Husk/{server_version} (linux)",
    }


def _check_content_type(value: str) -> None:
    media_type = value.partition(";")[0].strip().lower()
    if not media_type:
        raise InvalidParameter(f"malformed Content-Type header ({value}): mime: no media type")
    if media_type != JSON:
        raise InvalidParameter(f"unsupported Content-Type header ({value}): must be '{JSON}'")
