"""The HTTP edge: from a request to its handler, from what the handler raises to an answer, and where it all listens."""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from husk.api import missing
from husk.api.call import Call, common_headers
from husk.api.errors import error_response, failure
from husk.api.listen import listen
from husk.api.router import Kind, Route, Router, clean_path
from husk.api.routes import (
    console,
    container_files,
    container_operations,
    containers,
    disk,
    exec,
    images,
    networks,
    objects,
    plugins,
    services,
    swarm,
    system,
    transfer,
    volumes,
    websocket,
)
from husk.api.streams import Connection, Unanswered, held_body
from husk.api.tls import Tunnels
from husk.api.versioning import MINIMUM, Version, split_version
from husk.errors import HuskError, full_disk
from husk.tasks import Tasks

if TYPE_CHECKING:
    from husk.engine.engine import Engine

log = logging.getLogger(__name__)

MAX_BODY = 16 << 20
# What may wait for a handler that reads a long body; with aiohttp's 64 KiB the client stands still half of the time.
UPLOAD_BUFFER = 512 << 10
# As many as the kernel lets wait: a client that finds no room gets an error, on a Unix socket at once.
BACKLOG = 4096
SHUTDOWN_GRACE = 15.0

ROUTES: tuple[Route, ...] = (
    *system.ROUTES,
    *containers.ROUTES,
    *console.ROUTES,
    *container_files.ROUTES,
    *container_operations.ROUTES,
    *websocket.ROUTES,
    *exec.ROUTES,
    *images.ROUTES,
    *transfer.ROUTES,
    *disk.ROUTES,
    *networks.ROUTES,
    *volumes.ROUTES,
    *swarm.ROUTES,
    *services.ROUTES,
    *objects.ROUTES,
    *plugins.ROUTES,
    *missing.ROUTES,
)


def build_app(engine: "Engine", minimum: Version = MINIMUM) -> web.Application:
    """The whole API on one engine, for clients that speak `minimum` or newer."""
    app = web.Application(client_max_size=MAX_BODY)
    edge = Edge(engine, minimum)
    app.router.add_route("*", r"/{path:[\s\S]*}", edge.handle)
    app.on_shutdown.append(edge.shutdown)
    return app


class Edge:
    """Takes every request, whatever its path: versions, names with slashes and errors follow dockerd's rules."""

    def __init__(self, engine: "Engine", minimum: Version) -> None:
        self._engine = engine
        self._minimum = minimum
        self._router = Router(ROUTES)
        self._headers = common_headers(engine.system.version)
        self._changes = Tasks()
        self._streams: set[asyncio.Task[object]] = set()
        self._waiting: set[asyncio.Task[object]] = set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        held = held_body(request)
        response = await self._handle(request)
        if held is not None:
            await held.answer(request, response)
        return response

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if (clean := clean_path(request.path)) != request.path:
            place, query = quote(clean, errors="surrogateescape"), request.rel_url.raw_query_string
            return web.Response(status=301, headers={"Location": f"{place}?{query}" if query else place})
        if request.method == "OPTIONS":
            return web.Response(headers=self._headers)
        try:
            version, path = split_version(request.path, self._minimum)
            route, argument = self._router.match(request.method, path)
        except HuskError as error:
            return self._failed(error_response(error))
        call = Call(self._engine, request, version, argument, self._headers, self._changes, self._minimum)
        if route.kind is Kind.READ:
            return await self._answer(route, call)
        if route.kind is Kind.STREAM:
            return await self._stream(route, call)
        # The change has its own task: the client's going away cancels only our waiting for it.
        change = self._changes.spawn(self._answer(route, call), route.pattern, awaited=True)
        with _counted(self._waiting):
            return await asyncio.shield(change)

    async def _stream(self, route: Route, call: Call) -> web.StreamResponse:
        with _counted(self._streams):
            return await self._answer(route, call)

    async def _answer(self, route: Route, call: Call) -> web.StreamResponse:
        """What the handler answers, or the error it raised as an answer, unless its answer has already begun."""
        try:
            return await route.handler(call)
        except HuskError as error:
            if _begun(call.request):
                log.warning("%s %s broke off: %s", route.method, call.request.path, error.message)
                return Unanswered()
            return self._failed(error_response(error))
        except web.HTTPException as error:
            return self._failed(failure(error.status, error.reason))
        except Exception as error:
            if isinstance(error, ConnectionError) and _gone(call.request):
                return Unanswered()  # the client went away in the middle of an answer
            full = full_disk(error)
            if full is None:
                log.exception("%s %s failed", route.method, call.request.path)
            else:
                log.warning("%s %s failed: %s", route.method, call.request.path, full.message)
            if _begun(call.request):
                return Unanswered()
            if full is not None:
                return self._failed(error_response(full))
            return self._failed(failure(500, f"internal error: {type(error).__name__}: {error}"))

    def _failed(self, response: web.Response) -> web.Response:
        response.headers.update(self._headers)
        return response

    async def shutdown(self, app: web.Application) -> None:
        """End what works for one client alone; let changes come to their end, for as long as the settings say."""
        for task in self._streams:
            task.cancel()
        try:
            async with asyncio.timeout(self._engine.config.shutdown_timeout):
                await self._changes.join()
        except TimeoutError:
            log.warning("%d changes have not ended in time (shutdown-timeout)", len(self._waiting))
            for task in self._waiting:
                task.cancel()


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


def _gone(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing()


def _begun(request: web.Request) -> bool:
    return request.writer.output_size > 0


@contextlib.asynccontextmanager
async def serve(
    app: web.Application,
    hosts: Sequence[str],
    group: str,
    tls: ssl.SSLContext | None = None,
    loopback_only: bool = False,
) -> AsyncIterator[list[str]]:
    """Listen on every host (`unix://path`, `tcp://address:port`, `fd://`) until the context ends; gives the addresses
    in use. With `tls`, TCP connections speak it. `loopback_only` as for `listen`."""
    runner = web.AppRunner(
        app,
        access_log=None,
        handle_signals=False,
        handler_cancellation=True,
        shutdown_timeout=SHUTDOWN_GRACE,
        read_bufsize=UPLOAD_BUFFER,
        logger=_http_log(),
    )
    await runner.setup()
    paths: list[Path] = []
    sites: list[_Site] = []
    try:
        addresses = []
        for host in hosts:
            for listener, address in listen(host, group, loopback_only):
                if host.startswith("unix://"):
                    paths.append(Path(address.removeprefix("unix://")))
                sites.append(_Site(runner, listener, tls))
                await sites[-1].start()
                addresses.append(address)
        yield addresses
    finally:
        await runner.cleanup()
        for site in sites:
            await site.close_tunnels()
        for path in paths:
            path.unlink(missing_ok=True)


def _http_log() -> logging.Logger:
    """Where aiohttp complains. Bytes that are no HTTP are the client's fault, which is told it: no error of ours."""
    found = logging.getLogger("husk.api.http")
    found.addFilter(_only_our_faults)
    return found


def _only_our_faults(record: logging.LogRecord) -> bool:
    if record.exc_info and isinstance(fault := record.exc_info[1], HttpProcessingError):
        log.debug("a client sent what is not HTTP: %s", " ".join(fault.message.split())[:200])
        return False
    return True


class _Site(web.BaseSite):
    """aiohttp's sites make their sockets themselves, open to all until a mode is set, and know only its protocol."""

    def __init__(self, runner: web.BaseRunner, listener: socket.socket, tls: ssl.SSLContext | None) -> None:
        super().__init__(runner)
        self._listener = listener
        self._tunnels = Tunnels(tls, self._connection) if tls is not None else None

    @property
    def name(self) -> str:
        return str(self._listener.getsockname())

    async def start(self) -> None:
        await super().start()
        loop, listener = asyncio.get_running_loop(), self._listener
        if listener.family == socket.AF_UNIX:
            self._server = await loop.create_unix_server(self._connection, sock=listener, backlog=BACKLOG)
        else:
            serving = self._tunnels or self._connection
            self._server = await loop.create_server(serving, sock=listener, backlog=BACKLOG)

    async def close_tunnels(self) -> None:
        if self._tunnels is not None:
            await self._tunnels.close()

    def _connection(self) -> Connection:
        server = self._runner.server
        assert server is not None
        return Connection(server())
