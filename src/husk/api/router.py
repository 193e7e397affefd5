"""Which operation does a path mean? A table lookup: names may hold slashes, so no pattern of segments would do.

A pattern is as in the API description: `/images/{name}/json`, with at most one argument. For `GET /images/a/b/json` the
longest fixed ending that an operation of that method has wins, else the argument takes all that is left.
"""

import enum
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from aiohttp import web

from husk.api.errors import MethodNotAllowed, PageNotFound

if TYPE_CHECKING:
    from husk.api.call import Call

Handler = Callable[["Call"], Awaitable[web.StreamResponse]]


class Kind(enum.Enum):
    """What becomes of the handler when the client goes away."""

    READ = enum.auto()  # it may be cancelled: it changes nothing
    CHANGE = enum.auto()  # it goes on to its end: a half-done change is worse than an unheard answer
    STREAM = enum.auto()  # it is cancelled: it works for this client alone


class Route(NamedTuple):
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


class Router:
    """Finds the route of a request."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._fixed: dict[str, dict[str, Route]] = {}
        # head ("/images/") -> last word of the path -> [(whole ending, routes by method)], longest ending first
        self._endings: dict[str, dict[str, list[tuple[str, dict[str, Route]]]]] = {}
        self._bare: dict[str, dict[str, Route]] = {}
        for route in routes:
            _add(self._table(route.pattern), route)

    def match(self, method: str, path: str) -> tuple[Route, str]:
        """The route and its argument ("" without one); raises the 404 or 405 that fits."""
        allowed: set[str] = set()
        if (by_method := self._fixed.get(path)) is not None:
            if (route := by_method.get(method)) is not None:
                return route, ""
            allowed.update(by_method)
        slash = path.find("/", 1)
        head = path[: slash + 1]
        for ending, by_method in self._endings.get(head, {}).get(path[path.rfind("/") + 1 :], ()):
            argument = path[slash + 1 : -len(ending)]
            if argument and path.endswith(ending, slash):
                if (route := by_method.get(method)) is not None:
                    return route, argument
                allowed.update(by_method)
        argument = path[slash + 1 :]
        if argument and (by_method := self._bare.get(head, {})):
            if (route := by_method.get(method)) is not None:
                return route, argument
            # A bare argument takes anything; a path with a slash in it is no name that exists under another method.
            if "/" not in argument:
                allowed.update(by_method)
        if allowed:
            raise MethodNotAllowed(method, sorted(allowed))
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
