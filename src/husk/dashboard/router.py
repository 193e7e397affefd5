"""The table of the site's paths, and the page that each of them means. Pure.

`/containers/{name}/logs` has one word for each name in braces; `{name...}` takes the rest of the path, slashes too.
"""

import re
from collections.abc import Awaitable, Callable, Iterable
from enum import Enum
from typing import NamedTuple

from husk.api.http.response import Answer
from husk.dashboard.visit import Visit

Handler = Callable[[Visit], Awaitable[Answer]]


class PageKind(Enum):
    """The kind of a path, which decides the rules for who asks for it."""

    PAGE = "a page, or a document, that is asked for with GET and changes nothing"
    CHANGE = "a change, by POST from a form of ours; refused in read-only mode"
    STREAM = "an answer that goes on until the browser leaves"
    SOCKET = "a WebSocket; refused in read-only mode"
    OPEN = "what needs no session: signing in"


class PageRoute(NamedTuple):
    method: str
    pattern: str
    handler: Handler
    kind: PageKind
    # A change that takes the body of the request itself, as an upload does; else it is a form.
    reads_body: bool = False
    # A change of nothing but the session, which read-only mode does not mean.
    of_session: bool = False


def page(pattern: str, handler: Handler) -> PageRoute:
    return PageRoute("GET", pattern, handler, PageKind.PAGE)


def change(pattern: str, handler: Handler, *, reads_body: bool = False) -> PageRoute:
    return PageRoute("POST", pattern, handler, PageKind.CHANGE, reads_body)


def stream(pattern: str, handler: Handler) -> PageRoute:
    return PageRoute("GET", pattern, handler, PageKind.STREAM)


def socket(pattern: str, handler: Handler) -> PageRoute:
    return PageRoute("GET", pattern, handler, PageKind.SOCKET)


class PageMatch(NamedTuple):
    """The route that a path means; without a route, the methods that the path can be asked with, if any."""

    route: PageRoute | None
    words: dict[str, str]
    methods: tuple[str, ...] = ()


class PageRouter:
    """All paths of the site."""

    def __init__(self, routes: Iterable[PageRoute]) -> None:
        self._routes = [(_expression(route.pattern), route) for route in routes]

    def match(self, method: str, path: str) -> PageMatch:
        methods: list[str] = []
        for expression, route in self._routes:
            if (found := expression.fullmatch(path)) is None:
                continue
            if route.method == method:
                return PageMatch(route, found.groupdict())
            methods.append(route.method)
        return PageMatch(None, {}, tuple(methods))


def _expression(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)(\.\.\.)?\}", pattern)
    text = re.escape(parts[0])
    for name, rest, literal in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        text += f"(?P<{name}>{'.+' if rest else '[^/]+'}){re.escape(literal)}"
    return re.compile(text, re.DOTALL)
