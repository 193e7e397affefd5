"""The operations, one module per resource; each module ends in its `ROUTES`.

A handler reads the request, asks the engine, shows what came. It builds no error response: it lets errors rise.

A module is loaded with the first request whose path begins with one of its words: a start of the daemon needs none, and
many daemons never see a swarm.
"""

import importlib
from collections.abc import Iterator

from husk.api.calls.router import Route

# The first word of a path -> the modules that have operations on such paths.
MODULES: dict[str, tuple[str, ...]] = {
    "_ping": ("ping",),
    "auth": ("images",),
    "build": ("build", "disk"),
    "commit": ("images",),
    "configs": ("objects",),
    "containers": ("containers", "console", "container_files", "container_operations", "exec", "runs", "websocket"),
    "distribution": ("transfer",),
    "events": ("system",),
    "exec": ("exec",),
    "grpc": ("buildkit",),
    "images": ("images", "transfer"),
    "info": ("system",),
    "networks": ("networks",),
    "nodes": ("swarm",),
    "openapi.json": ("openapi",),
    "plugins": ("plugins",),
    "secrets": ("objects",),
    "services": ("services",),
    "session": ("buildkit",),
    "swarm": ("swarm",),
    "system": ("disk",),
    "tasks": ("services",),
    "version": ("system",),
    "volumes": ("volumes",),
}
_OF_SWARMS = frozenset({"objects", "services", "swarm"})


class Operations:
    """The modules that somebody has asked for."""

    def __init__(self) -> None:
        self._loaded: set[str] = set()

    def unloaded(self, raw_path: bytes) -> list[str]:
        """The modules that a request for this path needs loaded first; in a thread, for it takes a while."""
        words = raw_path.split(b"/", 3)[1:]
        if len(words) > 1 and words[0][:1] == b"v" and words[0][1:2].isdigit():
            del words[0]
        names = MODULES.get(words[0].decode("latin-1"), ()) if words else ()
        unloaded = [f"{__name__}.{name}" for name in names if name not in self._loaded]
        # The first of them makes what is declared, too.
        return [*unloaded, "husk.swarm.opening"] if unloaded and _OF_SWARMS.issuperset(names) else unloaded

    def needed_for(self, path: str) -> Iterator[Route]:
        """Load the routes that this path may mean and that were not loaded yet."""
        word = path[1:].partition("/")[0]
        for name in MODULES.get(word, ()):
            if name not in self._loaded:
                routes = routes_of(name)
                self._loaded.add(name)
                yield from routes


def routes_of(name: str) -> tuple[Route, ...]:
    routes: tuple[Route, ...] = importlib.import_module(f"{__name__}.{name}").ROUTES
    return routes


def all_routes() -> tuple[Route, ...]:
    """Every operation that has a handler."""
    names = dict.fromkeys(name for names in MODULES.values() for name in names)
    return tuple(route for name in names for route in routes_of(name))
