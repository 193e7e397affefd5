"""Husk: a container engine that speaks the Docker Engine API.

    from husk import Config, Engine

    async with Engine.open(Config()) as engine:
        ...

The names are loaded when they are used: the unpacking workers and the command line start without the whole engine.
"""

from typing import TYPE_CHECKING

from husk.version import __version__

if TYPE_CHECKING:
    from husk.config import Config
    from husk.engine.engine import Engine

__all__ = ["Config", "Engine", "__version__"]


def __getattr__(name: str) -> object:
    if name == "Engine":
        from husk.engine.engine import Engine

        return Engine
    if name == "Config":
        from husk.config import Config

        return Config
    raise AttributeError(f"module 'husk' has no attribute {name!r}")
