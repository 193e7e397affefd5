"""What does a handler get? One call: the engine, the request's parts as dockerd reads them, and ways to answer."""

import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import parse_qsl

import msgspec
from aiohttp import web

from husk.api.versioning import CURRENT, MINIMUM, Version
from husk.engine.model.clock import parse_timestamp
from husk.errors import InvalidParameter
from husk.gojson import Document, Reader, encode, parse_document
from husk.registry.manifest import Platform
from husk.tasks import Tasks

if TYPE_CHECKING:
    from multidict import MultiMapping

    from husk.engine.engine import Engine

T = TypeVar("T")

JSON = "application/json"
_SEND_BUFFER = 1 << 20
_FALSE = frozenset({"", "0", "no", "false", "none"})


class Call:
    """One request to one operation."""

    __slots__ = ("argument", "changes", "engine", "headers", "minimum", "request", "version")

    def __init__(
        self,
        engine: "Engine",
        request: web.Request,
        version: Version,
        argument: str,
        headers: dict[str, str],
        changes: Tasks,
        minimum: Version = MINIMUM,
    ) -> None:
        self.engine = engine
        self.changes = changes  # who owns what goes on when the client has gone
        self.request = request
        self.version = version
        self.minimum = minimum  # the oldest that this daemon serves
        self.argument = argument  # what stands for {id} or {name} in the path
        self.headers = headers  # what every response carries

    @property
    def query(self) -> "MultiMapping[str]":
        return self.request.query

    def text(self, name: str, default: str = "") -> str:
        return self.query.get(name, default)

    def file_name(self, name: str) -> str:
        """The name of a file, whose bytes need not be text; `os.fsencode` gives them back."""
        text = self.text(name)
        if "\ufffd" not in text:
            return text
        pairs = parse_qsl(self.request.rel_url.raw_query_string, keep_blank_values=True, errors="surrogateescape")
        return next((value for key, value in pairs if key == name), text)

    def flag(self, name: str, default: bool = False) -> bool:
        """dockerd's booleans: everything is true but "", 0, no, false and none."""
        value = self.query.get(name)
        return default if value is None else value.strip().lower() not in _FALSE

    def integer(self, name: str) -> int | None:
        """None when absent or empty."""
        value = self.query.get(name, "")
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
            return parse_timestamp(self.query.get(name, ""))
        except InvalidParameter as error:
            raise InvalidParameter(f'invalid value for "{name}": {error.message}') from error

    async def document(self) -> Document | None:
        """The JSON object in the body, None without a body; dockerd's rules for the Content-Type."""
        request = self.request
        content_type = request.headers.get("Content-Type", "")
        if not request.can_read_body or request.content_length == 0:
            if content_type:
                _check_content_type(content_type)
            return None
        _check_content_type(content_type)
        body = await request.read()
        if not body.strip():
            raise InvalidParameter("invalid JSON: got EOF while reading request body")
        return parse_document(body)

    async def body(self, reader: Reader[T]) -> T:
        return reader.read(await self.document() or {})

    def json(self, value: object, status: int = 200) -> web.Response:
        return web.Response(body=encode(value) + b"\n", status=status, headers={"Content-Type": JSON, **self.headers})

    def empty(self, status: int = 204) -> web.Response:
        return web.Response(status=status, headers=self.headers)

    async def stream(self, content_type: str) -> web.StreamResponse:
        """Answer 200 and the headers at once; the body follows through `write`."""
        response = web.StreamResponse(headers={"Content-Type": content_type, **self.headers})
        await response.prepare(self.request)
        return response

    async def archive(self, content_type: str, headers: Mapping[str, str] | None = None) -> web.StreamResponse:
        """As `stream`, for a long body: the kernel holds more of it, so that nobody waits for each piece."""
        response = web.StreamResponse(headers={"Content-Type": content_type, **self.headers, **(headers or {})})
        await response.prepare(self.request)
        connection = self.request.transport.get_extra_info("socket") if self.request.transport else None
        if connection is not None:
            with suppress(OSError):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        return response


def platform_parameter(text: str) -> Platform | None:
    """A platform as newer parts of the API write it: `{"os": "linux", "architecture": "arm"}`."""
    if not text:
        return None
    try:
        return msgspec.json.decode(text, type=Platform)
    except (msgspec.MsgspecError, UnicodeEncodeError) as error:
        raise InvalidParameter(f"invalid platform {text!r}: expected JSON with os and architecture: {error}") from error


def platform_parameters(call: Call, name: str) -> list[Platform]:
    """All platforms that a query names, one each time."""
    return [platform for text in call.query.getall(name, []) if (platform := platform_parameter(text)) is not None]


def common_headers(server_version: str) -> dict[str, str]:
    """What dockerd sends with every response."""
    return {
        "Api-Version": str(CURRENT),
        "Docker-Experimental": "false",
        "Ostype": "linux",
        "Server": f"Husk/{server_version} (linux)",
    }


def _check_content_type(value: str) -> None:
    media_type = value.partition(";")[0].strip().lower()
    if not media_type:
        raise InvalidParameter(f"malformed Content-Type header ({value}): mime: no media type")
    if media_type != JSON:
        raise InvalidParameter(f"unsupported Content-Type header ({value}): must be '{JSON}'")
