"""The HTTP edge: from a request to its handler, from what the handler raises to an answer, and where it all listens."""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from husk.aio.listening import KEEP_FILE
from husk.aio.once import load
from husk.api.calls.call import Call, Common
from husk.api.calls.errors import JSON_TYPE, error_body, error_response, failure
from husk.api.calls.router import Kind, Route, Router, clean_path
from husk.api.edge import missing
from husk.api.edge.listen import held_by_systemd, listen
from husk.api.edge.places import KnownPlaces
from husk.api.edge.tls import Tunnels
from husk.api.http import h2c
from husk.api.http.errors import BadRequest, BodyCutOff, BodyTooLarge
from husk.api.http.limits import HttpLimits
from husk.api.http.request import Request, is_text
from husk.api.http.response import Answer, Response, Unanswered, fields
from husk.api.http.server import Server
from husk.api.routes import Operations
from husk.api.versioning import MINIMUM, Version, split_version
from husk.composition import Engine
from husk.errors import HuskError, full_disk

log = logging.getLogger(__name__)

# As many as the kernel lets wait: a client that finds no room gets an error, on a Unix socket at once.
BACKLOG = 4096
SHUTDOWN_GRACE = 15.0


class ApiEdge:
    """Takes every request, whatever its path: versions, names with slashes and errors follow dockerd's rules."""

    def __init__(
        self,
        engine: Engine,
        minimum: Version = MINIMUM,
        limits: HttpLimits | None = None,
        *,
        load: Callable[..., Awaitable[None]] = load,
    ) -> None:
        """`load` loads modules that a request needs."""
        self._load = load
        self._engine = engine
        self._common = Common(engine, minimum, limits)
        self._operations = Operations()
        self._router = Router(missing.ROUTES)
        self._places: KnownPlaces[tuple[Version, Route, str]] = KnownPlaces()
        self._streams: set[asyncio.Task[object]] = set()
        self.server = Server(self._enter_first, self._common.limits, self._refusal, self._http2)

    def _enter_first(self, request: Request) -> "Answer | Coroutine[Any, Any, Answer] | asyncio.Task[Answer]":
        known = self._places.get(request.method, request.raw_path) is not None
        if not known and (needed := self._operations.unloaded(request.raw_path)):
            return self._when_loaded(needed, request)
        return self.handle(request)

    async def _when_loaded(self, modules: list[str], request: Request) -> Answer:
        """The first of its kind: others do not wait while what it needs is loaded."""
        with contextlib.suppress(RuntimeError):  # no thread can be started: then they are loaded here
            await self._load(*modules)
        answer = self.handle(request)
        if isinstance(answer, Answer):
            return answer
        # Its own going away ends only the waiting for a task.
        return await (asyncio.shield(answer) if isinstance(answer, asyncio.Task) else answer)

    def handle(self, request: Request) -> "Answer | Coroutine[Any, Any, Answer] | asyncio.Task[Answer]":
        place = self._places.get(request.method, request.raw_path)
        if place is None:
            found = self._locate(request)
            if isinstance(found, Response):
                return found
            place = found
        version, route, argument = place
        call = Call(self._common, request, version, argument)
        kind = route.kind
        if kind is Kind.CHANGE:
            # A task of ours: the client's going away ends only the waiting for it.
            return self._common.changes.spawn(self._answer(route, call), route.pattern, awaited=True)
        if kind is Kind.STREAM:
            return self._stream(route, call)
        try:
            answer = route.handler(call)
        except Exception as error:
            return self._failed(route, call, error)
        return answer if isinstance(answer, Answer) else self._finish(route, call, answer)

    async def _http2(self, request: Request) -> Answer:
        """HTTP/2 from the first byte is BuildKit's protocol: nothing else of ours is spoken in it."""
        await load("husk.api.routes.buildkit")
        # A door: the first build by this protocol loads it.
        from husk.api.routes.buildkit import server_of

        server = await server_of(self._common)
        await server.serve(h2c.begin(request))
        return Unanswered()

    def _locate(self, request: Request) -> tuple[Version, Route, str] | Response:
        """The operation that a path means, remembered; or the answer to a path that means none."""
        path, fields_of_all = request.path, self._common.fields
        if not is_text(path):
            return failure(400, "invalid path: it is not UTF-8", fields_of_all)
        if (clean := clean_path(path)) != path:
            place, query = quote(clean, errors="surrogateescape"), request.query_text
            return Response(301, b"", fields({"Location": f"{place}?{query}" if query else place}))
        if request.method == b"OPTIONS":
            return Response(200, b"", fields_of_all)
        try:
            version, path = split_version(path, self._common.minimum)
            self._router.add(self._operations.needed_for(path))
            route, argument = self._router.match(request.method.decode(), path)
        except HuskError as error:
            return error_response(error, fields_of_all)
        self._places.keep(request.method, request.raw_path, (version, route, argument))
        return version, route, argument

    async def _stream(self, route: Route, call: Call) -> Answer:
        with _counted(self._streams):
            return await self._answer(route, call)

    async def _answer(self, route: Route, call: Call) -> Answer:
        """Return the handler's answer, or the error it raised as an answer, unless its answer has already begun."""
        try:
            answer = route.handler(call)
            return answer if isinstance(answer, Answer) else await answer
        except Exception as error:
            return self._failed(route, call, error)

    async def _finish(self, route: Route, call: Call, answer: Coroutine[Any, Any, Answer]) -> Answer:
        try:
            return await answer
        except Exception as error:
            return self._failed(route, call, error)

    def _failed(self, route: Route, call: Call, error: Exception) -> Answer:
        """The answer to a call whose handler raised; Unanswered where the answer had begun, or nobody waits for it."""
        request, common = call.request, self._common.fields
        request.enter()
        path = request.path
        if isinstance(error, HuskError):
            if request.begun:
                request.fault = error.message
                log.warning("%s %s broke off: %s", route.method, path, error.message)
                return Unanswered()
            return error_response(error, common)
        if isinstance(error, BodyTooLarge):
            return failure(413, "Request Entity Too Large", common)
        if isinstance(error, BadRequest):
            return failure(error.status, error.reason, common)
        if isinstance(error, ConnectionError) and request.gone:
            return Unanswered()  # the client went away in the middle of an answer
        if isinstance(error, BodyCutOff):
            return failure(400, f"unexpected EOF: {error}", common)
        full = full_disk(error)
        if full is None:
            log.error("%s %s failed", route.method, path, exc_info=error)
        else:
            log.warning("%s %s failed: %s", route.method, path, full.message)
        if request.begun:
            return Unanswered()
        if full is not None:
            return error_response(full, common)
        return failure(500, f"internal error: {type(error).__name__}: {error}", common)

    def _refusal(self, error: BadRequest) -> tuple[bytes, bytes]:
        """Answer what is no request as everything else that is wrong is answered."""
        return JSON_TYPE + self._common.fields, error_body(error.reason)

    async def close(self) -> None:
        """End what works for one client alone; let changes come to their end, for as long as the settings say."""
        self.server.crowd.finish()
        for task in self._streams:
            task.cancel()
        changes = self._common.changes
        try:
            async with asyncio.timeout(self._engine.config.shutdown_timeout):
                await changes.join()
        except TimeoutError:
            log.warning("%d changes have not ended in time (shutdown-timeout)", changes.count)
            await self.server.close(0)
            return
        await self.server.close(SHUTDOWN_GRACE)


@contextlib.contextmanager
def _counted(tasks: set[asyncio.Task[object]]) -> Iterator[None]:
    """The current task is one of `tasks` meanwhile."""
    task = asyncio.current_task()
    assert task is not None
    tasks.add(task)
    try:
        yield
    finally:
        tasks.discard(task)


@contextlib.asynccontextmanager
async def serve(
    edge: ApiEdge,
    hosts: Sequence[str],
    group: str,
    tls: ssl.SSLContext | None = None,
    loopback_only: bool = False,
) -> AsyncIterator[list[str]]:
    """Listen on every host (`unix://path`, `tcp://address:port`, `fd://`) until the context ends; gives the addresses
    in use. With `tls`, TCP connections speak it. `loopback_only` as for `listen`."""
    paths: list[Path] = []
    doors: list[asyncio.Server] = []
    tunnels: list[Tunnels] = []
    try:
        addresses = []
        for host in hosts:
            for listener, address in listen(host, group, loopback_only):
                if host.startswith("unix://") and not held_by_systemd(host):
                    paths.append(Path(address.removeprefix("unix://")))
                doors.append(await _open(edge, listener, tls, tunnels))
                addresses.append(address)
        yield addresses
    finally:
        for door in doors:
            door.close()
        await edge.close()
        for each in tunnels:
            await each.close()
        for path in paths:
            path.unlink(missing_ok=True)


async def _open(
    edge: ApiEdge, listener: socket.socket, tls: ssl.SSLContext | None, tunnels: list[Tunnels]
) -> asyncio.Server:
    """Take connections on a socket."""
    loop = asyncio.get_running_loop()
    if listener.family == socket.AF_UNIX:
        return await loop.create_unix_server(edge.server, sock=listener, backlog=BACKLOG, **KEEP_FILE)
    if tls is None:
        return await loop.create_server(edge.server, sock=listener, backlog=BACKLOG)

    tunnels.append(Tunnels(tls, edge.server, edge.server.crowd))
    return await loop.create_server(tunnels[-1], sock=listener, backlog=BACKLOG)
