"""Husk: a container engine that speaks the Docker Engine API, and can be part of a Python program.

    import husk

    async with husk.Engine.open(data_root="/var/lib/app") as engine:
        result = await engine.run("busybox", ["echo", "hi"], network="none")

The names are loaded when they are used: the unpacking workers and the command line start without the whole engine.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from husk.version import __version__

if TYPE_CHECKING:
    from husk import errors
    from husk.client.client import Client, connect
    from husk.client.console import Console
    from husk.client.container import Container, Output
    from husk.client.execs import Exec, Result
    from husk.client.images import Image, PullProgress
    from husk.client.output import Piece
    from husk.client.spec import ContainerSpec, Healthcheck, Mount
    from husk.embedded import Engine, EngineConfig
    from husk.sync import run

__all__ = [
    "Client",
    "Console",
    "Container",
    "ContainerSpec",
    "Engine",
    "EngineConfig",
    "Exec",
    "Healthcheck",
    "Image",
    "Mount",
    "Output",
    "Piece",
    "PullProgress",
    "Result",
    "__version__",
    "connect",
    "errors",
    "run",
]

_WHERE = {
    "Client": "husk.client.client",
    "Console": "husk.client.console",
    "Container": "husk.client.container",
    "ContainerSpec": "husk.client.spec",
    "Engine": "husk.embedded",
    "EngineConfig": "husk.embedded",
    "Exec": "husk.client.execs",
    "Healthcheck": "husk.client.spec",
    "Image": "husk.client.images",
    "Mount": "husk.client.spec",
    "Output": "husk.client.container",
    "Piece": "husk.client.output",
    "PullProgress": "husk.client.images",
    "Result": "husk.client.execs",
    "connect": "husk.client.client",
    "run": "husk.sync",
}


def __getattr__(name: str) -> object:
    if name == "errors":
        return import_module("husk.errors")
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'husk' has no attribute {name!r}")
