"""From a request to its page: the rules that it must keep first, and what becomes of failures.

Host is ours -> asset, or a known path -> session, at its own place and from its own address -> Origin is ours
-> not read-only -> token of the form -> page
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Coroutine
from typing import Any

from husk.api.edge.listen import listen
from husk.api.edge.tls import Tunnels
from husk.api.http.errors import BadRequest
from husk.api.http.limits import HttpLimits
from husk.api.http.request import Query, Request, is_text
from husk.api.http.response import Answer, Response, Unanswered, fields
from husk.api.http.server import Server
from husk.client.client import Client
from husk.dashboard.failures import Failure, failure_of
from husk.dashboard.guard import Guard, guarded
from husk.dashboard.pages import ROUTES
from husk.dashboard.pages.sign_in import cookie_name
from husk.dashboard.router import PageKind, PageRoute, PageRouter
from husk.dashboard.sessions import MOST_STREAMS, BrowserSession, placed
from husk.dashboard.site import HEADERS, DashboardSettings, Site
from husk.dashboard.visit import Visit, peer_of, visitor
from husk.errors import Forbidden, HuskError

log = logging.getLogger(__name__)

LIMITS = HttpLimits(
    head_size=64 << 10,
    head_lines=128,
    document_size=1 << 16,
    head_time=20.0,
    idle_time=120.0,
    connections=512,
    remote_connections=512,
    peer_connections=256,
    makes_room=True,
)
# Seconds that the engine may take for a page, and for a change.
PAGE_TIME = 20.0
CHANGE_TIME = 600.0
_GRACE = 2.0
# What somebody who signs in sees first.
_FIRST = ("base.html", "signed_in.html", "overview.html")
_NOBODY = BrowserSession(digest=b"", place="", peer="", csrf="", begun=0.0, used=0.0)


class Dashboard:
    """Serves the pages of one engine."""

    def __init__(self, engine: Client, guard: Guard, *, read_only: bool = False) -> None:
        self.site = Site(engine, guard, read_only=read_only)
        self._router = PageRouter(ROUTES)
        self._streams: set[asyncio.Task[Any]] = set()
        self.server = Server(self.handle, LIMITS)

    def handle(self, request: Request) -> "Answer | Coroutine[Any, Any, Answer] | asyncio.Task[Answer]":
        site = self.site
        if not site.guard.knows_host(request.header("host")):
            return _plain(403, "This dashboard is not known by that name. Open it by the address that it printed.")
        place, path = placed(request.path)
        if not is_text(path):
            return _plain(400, "The path is not UTF-8.")
        if (asset := site.assets.answer(request, path, HEADERS)) is not None:
            return asset if request.method in (b"GET", b"HEAD") else _plain(405, "Method Not Allowed")
        method = "GET" if request.method == b"HEAD" else request.method.decode(errors="replace")
        route, words, methods = self._router.match(method, path)
        if place and route is not None and route.kind is PageKind.OPEN:
            route = None
        secret = _cookie(request.header("cookie"), cookie_name(site))
        session = site.sessions.find(secret, place, peer_of(request))
        visit = Visit(site, request, session or _NOBODY, words, path)
        visitor.set(visit.origin)
        if session is None and (route is None or route.kind is not PageKind.OPEN):
            return visit.page("sign_in.html", 401, problem="")
        if route is None:
            return self._failed(visit, Failure.method(methods) if methods else Failure.path(path))
        if not self._is_ours(route, request):
            return self._failed(visit, Failure.origin())
        if route.kind is PageKind.CHANGE:
            # A task of ours: the browser's going away ends only the waiting for it.
            return site.tasks.spawn(self._change(route, visit), route.pattern, awaited=True)
        if route.kind in (PageKind.STREAM, PageKind.SOCKET):
            return self._stream(route, visit)
        return self._answer(route, visit, PAGE_TIME)

    def _is_ours(self, route: PageRoute, request: Request) -> bool:
        """Tell if a page of ours, or the person, made the request. Links of other sites may lead to pages, no more."""
        host, site = request.header("host"), request.header("sec-fetch-site")
        if route.kind in (PageKind.CHANGE, PageKind.SOCKET) or request.has("origin"):
            return self.site.guard.is_own_origin(request.header("origin"), host, site)
        foreign = site in ("cross-site", "same-site")
        return not foreign or (request.header("sec-fetch-mode") == "navigate" and route.kind is not PageKind.STREAM)

    async def _change(self, route: PageRoute, visit: Visit) -> Answer:
        try:
            if not route.of_session:
                self._refuse_where_read_only()
            token = visit.request.header("x-csrf-token")
            if not route.reads_body:
                visit.form = await _form(visit.request)
                token = token or visit.form.get("csrf")
            if not visit.session.proves(token):
                raise Forbidden("the form is not from this session: load the page again")
        except Exception as error:
            return self._raised(visit, error)
        return await self._answer(route, visit, CHANGE_TIME)

    async def _stream(self, route: PageRoute, visit: Visit) -> Answer:
        session = visit.session
        if session.streams >= MOST_STREAMS:
            return self._failed(visit, Failure(429, "too many streams are open in this session: close some tabs"))
        task = asyncio.current_task()
        assert task is not None
        self._streams.add(task)
        session.streams += 1
        try:
            if route.kind is PageKind.SOCKET:
                self._refuse_where_read_only()
            return await route.handler(visit)
        except Exception as error:
            return self._raised(visit, error)
        finally:
            session.streams -= 1
            self._streams.discard(task)

    async def _answer(self, route: PageRoute, visit: Visit, most: float) -> Answer:
        try:
            async with asyncio.timeout(most):
                return await route.handler(visit)
        except Exception as error:
            return self._raised(visit, error)

    def _refuse_where_read_only(self) -> None:
        if self.site.read_only:
            raise Forbidden("this dashboard is read-only: it changes nothing")

    def _raised(self, visit: Visit, error: Exception) -> Answer:
        """The answer to what a page raised."""
        request = visit.request
        if request.gone or (request.begun and isinstance(error, HuskError | ConnectionError)):
            return Unanswered()
        failure = failure_of(error)
        if failure.status == 500:
            log.error("the dashboard's %s failed", visit.path, exc_info=error)
        return Unanswered() if request.begun else self._failed(visit, failure)

    def _failed(self, visit: Visit, failure: Failure) -> Response:
        if visit.wants_json:
            answer = visit.json({"message": failure.message}, failure.status)
        else:
            answer = visit.page("error.html", failure.status, title=failure.title, message=failure.message)
        # What is left of a body that nobody wants is not waited for.
        answer.close = visit.request.body is not None and not visit.request.body.ended
        return answer

    async def close(self) -> None:
        """End what pages listen to; let changes that are under way come to their end, but not for ever."""
        for task in list(self._streams):
            task.cancel()
        await self.server.close(_GRACE)
        await self.site.tasks.cancel_all()


async def _form(request: Request) -> Query:
    """Read a form. It is one of ours, so it is small and of the plain kind."""
    body = b"" if request.body is None else await request.body.document(LIMITS.document_size)
    kind = request.header("content-type").partition(";")[0].strip().lower()
    if body and kind != "application/x-www-form-urlencoded":
        raise BadRequest("a form is expected", 415)
    return Query(body.decode(errors="replace"))


def _cookie(header: str, name: str) -> str:
    for each in header.split(";"):
        found, _, value = each.strip().partition("=")
        if found == name:
            return value
    return ""


def _plain(status: int, text: str) -> Response:
    return Response(
        status, f"{text}\n".encode(), fields({**HEADERS, "Content-Type": "text/plain; charset=utf-8"}), close=True
    )


@contextlib.asynccontextmanager
async def serve(engine: Client, settings: DashboardSettings) -> AsyncIterator[Dashboard]:
    """Listen until the context ends. InvalidParameter for an address that must not be listened on."""
    address = guarded(settings.address, settings.tls is not None)
    [(listener, _)] = listen(f"tcp://{address}", "", flag=settings.flag)
    door: asyncio.Server | None = None
    try:
        taken = address._replace(port=int(listener.getsockname()[1]))
        guard = Guard(taken, settings.tls is not None, settings.names)
        dashboard = Dashboard(engine, guard, read_only=settings.read_only)
        door, tunnels = await _opened(dashboard.server, listener, settings)
    except BaseException:
        listener.close()
        raise
    dashboard.site.sampler.start()
    dashboard.site.tasks.spawn(asyncio.to_thread(dashboard.site.renderer.warm, *_FIRST), "templates of the pages")
    try:
        yield dashboard
    finally:
        door.close()
        await dashboard.close()
        if tunnels is not None:
            await tunnels.close()


async def _opened(server: Server, listener: socket.socket, settings: DashboardSettings) -> tuple[asyncio.Server, Any]:
    loop = asyncio.get_running_loop()
    if settings.tls is None:
        return await loop.create_server(server, sock=listener), None

    tunnels = Tunnels(settings.tls, server, server.crowd)
    return await loop.create_server(tunnels, sock=listener), tunnels
