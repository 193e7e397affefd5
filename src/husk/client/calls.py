"""Calls of the Engine API: paths and documents in, documents and streams out, errors as ours.

Connections that have said all are kept for the next call. One on which something is still to be said when its caller
leaves is closed, which tells the engine that nobody listens any more.

Documents are read with `json`: a short command would wait longer for msgspec to be loaded than for its answer.
"""

import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode

from husk.client.http import Connection, Content, Dial, Reader, Response, Writer
from husk.errors import (
    Conflict,
    Forbidden,
    HuskError,
    InvalidParameter,
    NotFound,
    NotImplementedYet,
    NotModified,
    SystemFault,
    Unauthorized,
    Unavailable,
)
from husk.text.digits import read_number

if TYPE_CHECKING:
    import asyncio

    from husk.client.background import Background

T = TypeVar("T")

# The newest version of the API that this client knows; an older engine is asked in its own.
NEWEST = (1, 51)
_MOST_IDLE = 16
_LONGEST_IDLE = 5.0
_ERRORS: dict[int, type[HuskError]] = {
    304: NotModified,
    400: InvalidParameter,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: NotImplementedYet,
    409: Conflict,
    501: NotImplementedYet,
    503: Unavailable,
}
Query = Mapping[str, object]
_NOTHING: Query = {}


class Calls:
    """Calls to one engine."""

    def __init__(self, dial: Dial, address: str = "") -> None:
        """`address` is where the engine is; empty for one of this process."""
        self.dial = dial
        self.address = address
        self._idle: list[tuple[Connection, float]] = []
        self._version = ""
        self._server = ""
        self._closed = False

    @cached_property
    def tasks(self) -> "Background":
        """The tasks that must not be cut off: they are waited for before the engine is left."""
        # A door: asyncio, which short commands do without.
        from husk.client.background import Background

        return Background()

    async def ping(self) -> None:
        """Check that the engine answers. The first answer also says which version of the API is spoken."""
        if not self._version:
            await self._negotiated()
            return
        async with self.answer("GET", "/_ping") as response:
            await response.read()

    async def asks_husk(self) -> bool:
        """Return True if the engine is Husk, which tells some things that dockerd does not."""
        await self._negotiated()
        return self._server.startswith("Husk/")

    async def get(self, path: str, query: Query = _NOTHING, headers: Mapping[str, str] | None = None) -> Any:
        return await self._document("GET", path, query, b"", headers or {})

    async def post(
        self, path: str, document: object = None, query: Query = _NOTHING, headers: Mapping[str, str] | None = None
    ) -> Any:
        """The document that is answered; None where there is none."""
        content = b"" if document is None else _encoded(document)
        told = {"Content-Type": "application/json", **(headers or {})} if content else headers or {}
        return await self._document("POST", path, query, content, told)

    async def put(self, path: str, content: Content, query: Query = _NOTHING) -> Any:
        return await self._document("PUT", path, query, content, {"Content-Type": "application/x-tar"})

    async def delete(self, path: str, query: Query = _NOTHING) -> Any:
        return await self._document("DELETE", path, query, b"", {})

    async def head(self, path: str, query: Query = _NOTHING) -> Mapping[str, str]:
        async with self.answer("HEAD", path, query) as response:
            return response.headers

    @asynccontextmanager
    async def answer(
        self,
        method: str,
        path: str,
        query: Query = _NOTHING,
        content: Content = b"",
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Response]:
        """An answer while it is read; one that tells of a failure is raised as what it means."""
        connection, response = await self.begun(method, path, query, content, headers)
        try:
            yield response
        finally:
            self.keep(connection, response)

    async def begun(
        self,
        method: str,
        path: str,
        query: Query = _NOTHING,
        content: Content = b"",
        headers: Mapping[str, str] | None = None,
    ) -> tuple[Connection, Response]:
        """An answer that the caller reads, and its connection, for `keep` when that is done."""
        target = f"/v{await self._negotiated()}{target_of(path, query)}"
        connection, response = await self._ask(method, target, content, headers or {})
        if response.status >= 300:
            try:
                raise _failure(response.status, await response.read())
            finally:
                self.keep(connection, response)
        return connection, response

    async def lines(
        self,
        method: str,
        path: str,
        query: Query = _NOTHING,
        content: Content = b"",
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[dict[str, Any]]:
        """The documents of an answer that has one per line, as they come."""
        async with self.answer(method, path, query, content, headers) as response:
            rest = b""
            async for piece in response.pieces():
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    if line.strip():
                        yield json.loads(line)
            if rest.strip():
                yield json.loads(rest)

    async def upgrade(
        self, path: str, document: object = None, query: Query = _NOTHING, protocol: str = "tcp"
    ) -> tuple[bytes, Reader, Writer]:
        """Take a connection over: what came with the answer, and both directions. The caller closes the writer."""
        content = b"" if document is None else _encoded(document)
        headers = {"Connection": "Upgrade", "Upgrade": protocol}
        if protocol == "tcp":
            headers["Content-Type"] = "application/json"
        target = f"/v{await self._negotiated()}{target_of(path, query)}"
        _, response = await self._ask("POST", target, content, headers)
        try:
            if response.status not in (101, 200):
                raise _failure(response.status, await response.read())
        except BaseException:
            response.close()
            raise
        return response.take_over()

    async def made(self, making: Coroutine[Any, Any, T], undo: Callable[[T], Coroutine[Any, Any, object]]) -> T:
        """Return the result of `making`. If cancelled meanwhile, first undo that result, or see that there is none."""
        return await self.tasks.made(making, undo)

    async def close(self) -> None:
        if "tasks" in vars(self):
            await self.tasks.join()
        self._closed = True
        idle, self._idle = self._idle, []
        for connection, _ in idle:
            connection.close()

    async def _document(
        self, method: str, path: str, query: Query, content: Content, headers: Mapping[str, str]
    ) -> Any:
        async with self.answer(method, path, query, content, headers) as response:
            body = await response.read()
            kind = response.headers.get("content-type", "")
        return json.loads(body) if body and kind.startswith("application/json") else None

    async def _ask(
        self, method: str, target: str, content: Content, headers: Mapping[str, str]
    ) -> tuple[Connection, Response]:
        """Ask on a connection that is free, or on a new one."""
        connection = self._free() or await self.dial()
        try:
            return connection, await connection.request(method, target, headers, content, self._send)
        except ConnectionError as error:
            raise Unavailable(f"the engine broke the connection off: {error}") from error

    def _send(self, body: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        return self.tasks.send(body)

    def keep(self, connection: Connection, response: Response) -> None:
        """Keep a connection for the next call, if there may be one on it."""
        if response.reusable and not self._closed and len(self._idle) < _MOST_IDLE:
            self._idle.append((connection, time.monotonic()))
        else:
            response.close()

    def _free(self) -> Connection | None:
        """One that was kept; not for long, for the engine closes connections on which nothing is said."""
        now = time.monotonic()
        while self._idle:
            connection, since = self._idle.pop()
            if connection.alive and now - since < _LONGEST_IDLE:
                return connection
            connection.close()
        return None

    async def _negotiated(self) -> str:
        if not self._version:
            connection, response = await self._ask("GET", "/_ping", b"", {})
            try:
                said = await response.read()
                if response.status >= 300:
                    raise _failure(response.status, said)
            finally:
                self.keep(connection, response)
            offered = response.headers.get("api-version", "")
            self._server = response.headers.get("server", "")
            self._version = ".".join(map(str, min(_version(offered), NEWEST)))
        return self._version


def target_of(path: str, query: Query = _NOTHING) -> str:
    """A path with its query: truths as 0 and 1, lists as repeated words, mappings as JSON; None is left out."""
    pairs: list[tuple[str, str]] = []
    for name, value in query.items():
        if value is None:
            continue
        if isinstance(value, bool):
            pairs.append((name, "1" if value else "0"))
        elif isinstance(value, Mapping):
            if value:
                pairs.append((name, _encoded(value).decode()))
        elif isinstance(value, list | tuple):
            pairs.extend((name, str(each)) for each in value)
        else:
            pairs.append((name, str(value)))
    place = quote(path, safe="/:@,+~")
    return f"{place}?{urlencode(pairs)}" if pairs else place


def _encoded(document: object) -> bytes:
    # A door: msgspec takes longer to load than a short command that sends no document takes.
    import msgspec

    return msgspec.json.encode(document)


def _version(text: str) -> tuple[int, int]:
    major, minor = map(read_number, text.partition(".")[::2])
    return NEWEST if major is None or minor is None else (major, minor)


def field(answer: Any, name: str) -> Any:
    """Take a field out of an engine's answer. SystemFault for an answer without it."""
    try:
        return answer[name]
    except (KeyError, TypeError):
        raise SystemFault(f"the engine's answer has no field {name}") from None


def _failure(status: int, body: bytes) -> HuskError:
    try:
        message = str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        message = body.decode(errors="replace").strip() or f"the engine answered with status {status}"
    error = _ERRORS.get(status, SystemFault if status >= 500 else InvalidParameter)(message)
    error.from_engine = True
    return error
