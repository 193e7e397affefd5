"""One request, in the words of a page: who asks, what for, and how to answer."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextvars import ContextVar
from typing import Any
from urllib.parse import quote

import msgspec

from husk.api.http.request import Query, Request
from husk.api.http.response import Response, StreamedResponse, fields
from husk.client.client import Client
from husk.dashboard.navigation import NAVIGATION
from husk.dashboard.secret_words import masked_values
from husk.dashboard.sessions import BrowserSession
from husk.dashboard.site import Site

# The browser for which pages ask the engine; empty where nobody does.
visitor: ContextVar[str] = ContextVar("visitor", default="")

HTML = "text/html; charset=utf-8"
# The header by which our script asks for one region of a page.
REGION = "x-region"
# Seconds between two signs of life on a stream.
BEAT = 15.0


class StreamEnded(Exception):
    """There are no more messages."""


class Visit:
    """A request as pages get it. `words` are those of its path, `form` what a form says, `query` what is behind `?`."""

    def __init__(
        self, site: Site, request: Request, session: BrowserSession, words: Mapping[str, str], path: str = ""
    ) -> None:
        """`path` is that of the page, without the place of the session before it."""
        self.site = site
        self.request = request
        self.session = session
        self.words = words
        self.path = path or request.path
        self.form = Query("")

    @property
    def engine(self) -> Client:
        return self.site.engine

    @property
    def query(self) -> Query:
        return self.request.query

    @property
    def origin(self) -> str:
        """The browser's address, and its session by a part of a digest that opens nothing."""
        address = peer_of(self.request)
        return f"{address} session {self.session.digest.hex()[:12]}" if self.session.digest else address

    @property
    def hostname(self) -> str:
        """The name that the browser knows this host by, without a port."""
        host = self.request.header("host")
        return host if host.endswith("]") else host.rpartition(":")[0] or host

    # answers

    def page(self, template: str, status: int = 200, **values: Any) -> Response:
        """A page; or one region of it, the block of that name, where our script asks for one (404 for none, unless the
        page itself is a refusal)."""
        values = {**self._common(), **values}
        if region := self.request.header(REGION):
            body = self.site.renderer.block(template, region, values)
            # Not the whole page: the script would put it into itself.
            missing = 404 if status < 400 else status
            return self.document(body, HTML, status) if body is not None else self.document(b"", HTML, missing)
        values["notices"] = self.session.take_notices()
        return self.document(self.site.renderer.page(template, values), HTML, status)

    def confirm(
        self,
        question: str,
        *,
        details: str = "",
        verb: str,
        back: str,
        to: str = "",
        kept: Iterable[tuple[str, str]] = (),
        inputs: Mapping[str, str] = {},
    ) -> Response:
        """Ask before what cannot be undone: a form that posts to this same path or `to` another, with `inputs` to
        choose from.

        The inputs are truths (a box to tick); their names are those of the form's fields, their values the labels.
        Fields that are `kept` go with the form as they are.
        """
        return self.page(
            "confirm.html",
            question=question,
            details=details,
            verb=verb,
            back=back,
            to=to or quote(self.path, errors="replace"),
            kept=tuple(kept),
            inputs=inputs,
        )

    def redirect(self, path: str, notice: str = "", *, bad: bool = False) -> Response:
        """Show another page next, with a line that tells what was done, or what of it failed. Our script is told the
        line alone."""
        path = self.session.root + path
        if self.wants_json:
            return self.json({"message": notice, "next": path, "bad": bad})
        if notice:
            self.session.notify(notice, bad)
        return Response(303, b"", fields({**self.site.headers, "Location": quote(path, safe="/?&=%~,:+@#")}))

    def back(self, default: str, notice: str = "", *, bad: bool = False) -> Response:
        """As `redirect`, to where the form says that it was, if that is a page of ours."""
        wanted = self.form.get("next")
        ours = wanted.startswith("/") and not wanted.startswith(("//", "/\\")) and wanted.isprintable()
        return self.redirect(wanted if ours else default, notice, bad=bad)

    def json(self, document: object, status: int = 200) -> Response:
        return self.document(msgspec.json.encode(document), "application/json", status)

    def document(self, body: bytes, kind: str, status: int = 200, **headers: str) -> Response:
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return Response(status, body, fields({**self.site.headers, "Content-Type": kind, **more}))

    def values(self, named: Mapping[str, Any] | None) -> dict[str, str]:
        """Labels, or options of drivers, as this visitor may see them."""
        found = named or {}
        return masked_values(found) if self.site.read_only else {name: str(found[name]) for name in found}

    @property
    def wants_json(self) -> bool:
        """True if our script asks, and not a form."""
        return "application/json" in self.request.header("accept")

    def streamed(self, kind: str, **headers: str) -> StreamedResponse:
        """An answer whose body is written piece by piece."""
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return StreamedResponse(self.request, fields({**self.site.headers, "Content-Type": kind, **more}))

    async def tell(self, messages: "AsyncIterator[tuple[str, object]]", beat: float = BEAT) -> StreamedResponse:
        """Server-sent events: (name, document) of each, with a sign of life where there is none for a while."""
        stream = self.streamed("text/event-stream", X_Accel_Buffering="no")
        await stream.write(b"retry: 2000\n\n")
        waiting: asyncio.Future[tuple[str, object]] | None = None
        try:
            while self.site.sessions.alive(self.session):
                if waiting is None:
                    waiting = self.site.tasks.spawn(_next(messages), "next message", awaited=True)
                done, _ = await asyncio.wait([waiting], timeout=beat)
                if not done:
                    await stream.write(b":\n\n")
                    continue
                try:
                    name, document = waiting.result()
                except StreamEnded:
                    break
                finally:
                    waiting = None
                await stream.write(b"event: %b\ndata: %b\n\n" % (name.encode(), msgspec.json.encode(document)))
        finally:
            if waiting is not None:
                waiting.cancel()
                await asyncio.wait([waiting])
            if close := getattr(messages, "aclose", None):
                await close()
        return stream

    def _common(self) -> dict[str, Any]:
        return {
            "csrf": self.session.csrf,
            "signed_in": bool(self.session.digest),
            "read_only": self.site.read_only,
            "theme": self.session.choices.get("theme", ""),
            "navigation": NAVIGATION,
            "root": self.session.root,
            "path": self.path,
            "version": self.site.version,
            "notices": (),
            "searched": "",
            "hostname": self.hostname,
        }


def peer_of(request: Request) -> str:
    """The address of a browser, also where it came through a tunnel of TLS."""
    channel = request.connection
    return channel.peer or (channel.behind or {}).get("address", "")


async def _next(messages: "AsyncIterator[tuple[str, object]]") -> tuple[str, object]:
    try:
        return await anext(messages)
    except StopAsyncIteration:
        # A task cannot raise it as it is.
        raise StreamEnded from None
