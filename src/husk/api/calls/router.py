"""The operation that a path means, by a table lookup: names may hold slashes, so no pattern of segments would do.

A pattern is as in the API description: `/images/{name}/json`, with at most one argument. For `GET /images/a/b/json` the
longest fixed ending that an operation of that method has wins, else the argument takes all that is left.
"""

import enum
import posixpath
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from msgspec import Struct

from husk.api.calls.call import Call
from husk.api.calls.errors import PageNotFound
from husk.api.http.response import Answer

# The one path that dockerd knows with a slash at its end too.
_OTHER_NAMES = {"/networks/": "/networks"}

# One that needs not wait for anything answers at once: that spares the request a task of its own.
Handled = Answer | Coroutine[Any, Any, Answer]
Handler = Callable[[Call], Handled]


class Kind(enum.Enum):
    """The kind of an operation: what becomes of its handler when the client goes away."""

    READ = enum.auto()  # it may be cancelled: it changes nothing
    CHANGE = enum.auto()  # it goes on to its end: a half-done change is worse than an unheard answer
    STREAM = enum.auto()  # it is cancelled: it works for this client alone


class Route(Struct, frozen=True):
    method: str
    pattern: str
    handler: Handler
    kind: Kind


def read(pattern: str, handler: Handler, method: str = "GET") -> Route:
    return Route(method, pattern, handler, Kind.READ)


def change(method: str, pattern: str, handler: Handler) -> Route:
    return Route(method, pattern, handler, Kind.CHANGE)


def stream(method: str, pattern: str, handler: Handler) -> Route:
    return Route(method, pattern, handler, Kind.STREAM)


def clean_path(path: str) -> str:
    """The path without doubled slashes and dots, where dockerd sends who asks for it otherwise; an end slash stays."""
    if "//" not in path and "/." not in path:
        return path
    clean = "/" + posixpath.normpath(path).lstrip("/")
    return clean + "/" if path.endswith("/") and clean != "/" else clean


class Router:
    """Finds the route of a request."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._fixed: dict[str, dict[str, Route]] = {}
        # head ("/images/") -> last word of the path -> [(whole ending, routes by method)], longest ending first
        self._endings: dict[str, dict[str, list[tuple[str, dict[str, Route]]]]] = {}
        self._bare: dict[str, dict[str, Route]] = {}
        self.add(routes)

    def add(self, routes: Iterable[Route]) -> None:
        for route in routes:
            _add(self._table(route.pattern), route)

    def match(self, method: str, path: str) -> tuple[Route, str]:
        """The route and its argument ("" without one). As with dockerd, a path under another method is no page."""
        path = _OTHER_NAMES.get(path, path)
        if (by_method := self._fixed.get(path)) is not None and (route := by_method.get(method)) is not None:
            return route, ""
        slash = path.find("/", 1)
        head = path[: slash + 1]
        for ending, by_method in self._endings.get(head, {}).get(path[path.rfind("/") + 1 :], ()):
            argument = path[slash + 1 : -len(ending)]
            fits = argument and path.endswith(ending, slash)
            if fits and (route := by_method.get(method)) is not None:
                return route, argument
        argument = path[slash + 1 :]
        if argument and (route := self._bare.get(head, {}).get(method)) is not None:
            return route, argument
        raise PageNotFound

    def _table(self, pattern: str) -> dict[str, Route]:
        head, brace, rest = pattern.partition("{")
        if not brace:
            return self._fixed.setdefault(pattern, {})
        ending = rest.partition("}")[2]
        if not ending:
            return self._bare.setdefault(head, {})
        candidates = self._endings.setdefault(head, {}).setdefault(ending.rpartition("/")[2], [])
        for known, by_method in candidates:
            if known == ending:
                return by_method
        by_method = {}
        candidates.append((ending, by_method))
        candidates.sort(key=lambda candidate: -len(candidate[0]))
        return by_method


def _add(by_method: dict[str, Route], route: Route) -> None:
    if route.method in by_method:
        raise ValueError(f"two routes for {route.method} {route.pattern}")
    by_method[route.method] = route
