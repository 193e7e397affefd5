"""Husk: a container engine that speaks the Docker Engine API, and can be part of a Python program.

    import husk

    async with husk.Engine.open(data_root="/var/lib/app") as engine:
        result = await engine.run("busybox", ["echo", "hi"], network="none")

The names are loaded when they are used: the unpacking workers and the command line start without the whole engine.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from husk.version import __version__

if TYPE_CHECKING:
    from husk import errors
    from husk.client.builds import BuildOptions
    from husk.client.client import Client, connect
    from husk.client.compose import Project
    from husk.client.console import Console
    from husk.client.container import Container
    from husk.client.events import Event
    from husk.client.execs import Exec, Result
    from husk.client.files import FileChange, Files
    from husk.client.image import Image
    from husk.client.keywords import ContainerOptions, RunOptions, ServiceChanges, ServiceOptions
    from husk.client.logs import LogEntry, Output
    from husk.client.networks import Network
    from husk.client.output import Piece
    from husk.client.path_stat import PathStat
    from husk.client.plugins import Plugin
    from husk.client.ports import Port
    from husk.client.progress import BuildProgress, PullProgress
    from husk.client.prune import Pruned
    from husk.client.registry_data import RegistryData
    from husk.client.service_files import ServiceConfig, ServiceSecret
    from husk.client.service_spec import RestartPolicy, ServiceFile, ServiceSpec, UpdateConfig
    from husk.client.services import Service, Task
    from husk.client.spec import ContainerSpec, Healthcheck, Mount
    from husk.client.stats import Stats
    from husk.client.swarm import Node
    from husk.client.volumes import Volume
    from husk.errors import HuskError
    from husk.library.blocking import run
    from husk.library.embedded import Engine, EngineConfig, EngineOptions
    from husk.library.sync import SyncClient, connect_sync

__all__ = [
    "BuildOptions",
    "BuildProgress",
    "Client",
    "Console",
    "Container",
    "ContainerOptions",
    "ContainerSpec",
    "Engine",
    "EngineConfig",
    "EngineOptions",
    "Event",
    "Exec",
    "FileChange",
    "Files",
    "Healthcheck",
    "HuskError",
    "Image",
    "LogEntry",
    "Mount",
    "Network",
    "Node",
    "Output",
    "PathStat",
    "Piece",
    "Plugin",
    "Port",
    "Project",
    "Pruned",
    "PullProgress",
    "RegistryData",
    "RestartPolicy",
    "Result",
    "RunOptions",
    "Service",
    "ServiceChanges",
    "ServiceConfig",
    "ServiceFile",
    "ServiceOptions",
    "ServiceSecret",
    "ServiceSpec",
    "Stats",
    "SyncClient",
    "Task",
    "UpdateConfig",
    "Volume",
    "__version__",
    "connect",
    "connect_sync",
    "errors",
    "run",
]

_WHERE = {
    "BuildOptions": "husk.client.builds",
    "BuildProgress": "husk.client.progress",
    "Client": "husk.client.client",
    "Console": "husk.client.console",
    "Container": "husk.client.container",
    "ContainerOptions": "husk.client.keywords",
    "ContainerSpec": "husk.client.spec",
    "Engine": "husk.library.embedded",
    "EngineConfig": "husk.library.embedded",
    "EngineOptions": "husk.library.embedded",
    "Event": "husk.client.events",
    "Exec": "husk.client.execs",
    "FileChange": "husk.client.files",
    "Files": "husk.client.files",
    "Healthcheck": "husk.client.spec",
    "HuskError": "husk.errors",
    "Image": "husk.client.image",
    "LogEntry": "husk.client.logs",
    "Mount": "husk.client.spec",
    "Network": "husk.client.networks",
    "Node": "husk.client.swarm",
    "Output": "husk.client.logs",
    "PathStat": "husk.client.path_stat",
    "Piece": "husk.client.output",
    "Plugin": "husk.client.plugins",
    "Port": "husk.client.ports",
    "Project": "husk.client.compose",
    "Pruned": "husk.client.prune",
    "PullProgress": "husk.client.progress",
    "RegistryData": "husk.client.registry_data",
    "RestartPolicy": "husk.client.service_spec",
    "Result": "husk.client.execs",
    "RunOptions": "husk.client.keywords",
    "Service": "husk.client.services",
    "ServiceChanges": "husk.client.keywords",
    "ServiceConfig": "husk.client.service_files",
    "ServiceFile": "husk.client.service_spec",
    "ServiceOptions": "husk.client.keywords",
    "ServiceSecret": "husk.client.service_files",
    "ServiceSpec": "husk.client.service_spec",
    "Stats": "husk.client.stats",
    "SyncClient": "husk.library.sync",
    "Task": "husk.client.services",
    "UpdateConfig": "husk.client.service_spec",
    "Volume": "husk.client.volumes",
    "connect": "husk.client.client",
    "connect_sync": "husk.library.sync",
    "run": "husk.library.blocking",
}


if not TYPE_CHECKING:  # or a type checker would believe in every name

    def __getattr__(name: str) -> object:
        if name == "errors":
            return import_module("husk.errors")
        if name in _WHERE:
            return getattr(import_module(_WHERE[name]), name)
        raise AttributeError(f"module 'husk' has no attribute {name!r}", name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    """List the public names, loaded or not: what TAB offers, and what a misspelt name is compared with."""
    return sorted(__all__)
