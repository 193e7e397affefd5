"""An engine inside a Python program: no daemon, no socket in the file system.

The program speaks with it as it would with a daemon: the API's own edge serves it over pairs of sockets, which costs
about a tenth of a millisecond a call and keeps one behaviour, one set of errors and one face for both.
"""

import asyncio
import hashlib
import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from husk.api.http.limits import Limits
from husk.api.server import Edge
from husk.client.client import Client
from husk.client.http import Connection
from husk.config import DEFAULT_DATA_ROOT, DEFAULT_EXEC_ROOT, AddressPool, Config, RuntimeConfig
from husk.engine.engine import Engine as Core
from husk.errors import Forbidden, InvalidParameter

_PIECE = 1 << 18


class EngineConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How an engine in the process is to be: where it keeps things, and what it gives containers by default.

    EngineConfig(data_root="/var/lib/app", bridge="none")
    """

    data_root: str | os.PathLike[str] = DEFAULT_DATA_ROOT
    # What lives as long as the machine runs; by default a directory below /run for each data root.
    exec_root: str | os.PathLike[str] | None = None
    # The bridge of the default network; `none` for no default network.
    bridge: str = ""
    # The address of that bridge with its network: `10.1.0.1/24`.
    bip: str = ""
    # Networks get a subnet out of these: (`10.0.0.0/8`, 24).
    address_pools: tuple[tuple[str, int], ...] = ()
    default_runtime: str = ""
    runtimes: Mapping[str, str] = {}  # name to program
    insecure_registries: tuple[str, ...] = ()
    registry_mirrors: tuple[str, ...] = ()
    log_driver: str = "json-file"
    log_opts: Mapping[str, str] = {}
    labels: tuple[str, ...] = ()

    def settings(self) -> Config:
        """The same in the engine's own words."""
        data_root = Path(self.data_root).absolute()
        return Config(
            hosts=(),
            data_root=data_root,
            exec_root=_exec_root(data_root) if self.exec_root is None else Path(self.exec_root).absolute(),
            bridge=self.bridge,
            bip=self.bip,
            default_address_pools=tuple(AddressPool(base, size) for base, size in self.address_pools),
            default_runtime=self.default_runtime,
            runtimes={name: RuntimeConfig(path=path) for name, path in self.runtimes.items()},
            insecure_registries=self.insecure_registries,
            registry_mirrors=self.registry_mirrors,
            log_driver=self.log_driver,
            log_opts=self.log_opts,
            labels=self.labels,
        )


def _exec_root(data_root: Path) -> Path:
    if data_root == DEFAULT_DATA_ROOT:
        return DEFAULT_EXEC_ROOT
    return Path(f"/run/husk-{hashlib.sha256(str(data_root).encode()).hexdigest()[:12]}")


class Engine(Client):
    """An engine of this process, with all that a client can do.

    async with husk.Engine.open(data_root="/var/lib/app") as engine:
        result = await engine.run("busybox", ["echo", "hi"], network="none")
    """

    def __init__(self, core: Core, edge: Edge) -> None:
        super().__init__(self._dial)
        self._core = core
        self._edge = edge

    @classmethod
    @asynccontextmanager
    async def open(
        cls, config: EngineConfig | None = None, *, detach: bool = False, **settings: Any
    ) -> AsyncIterator["Engine"]:
        """The engine of a data root, which nobody else may use meanwhile: Conflict says which process has it.

        `settings` are the fields of `EngineConfig`. At the end containers that still run are ended, or with `detach`
        run on: the next engine of this data root finds them.
        """
        wanted = _config(config, settings).settings()
        if os.geteuid() != 0:
            raise Forbidden("an engine needs root: it mounts filesystems and makes namespaces")
        async with AsyncExitStack() as parts:
            core = await parts.enter_async_context(Core.open(wanted))
            edge = Edge(core, limits=Limits())
            parts.push_async_callback(edge.close)
            engine = cls(core, edge)
            parts.push_async_callback(engine.close)
            if not detach:
                parts.push_async_callback(engine._end_containers)
            yield engine

    async def _dial(self) -> Connection:
        ours, theirs = socket.socketpair()
        loop = asyncio.get_running_loop()
        await loop.connect_accepted_socket(self._edge.server, theirs)
        return Connection(*await asyncio.open_unix_connection(sock=ours, limit=_PIECE))

    async def _end_containers(self) -> None:
        running = await self.containers.list()
        await asyncio.gather(*(container.stop() for container in running), return_exceptions=True)


def _config(config: EngineConfig | None, settings: Mapping[str, Any]) -> EngineConfig:
    try:
        return EngineConfig(**settings) if config is None else msgspec.structs.replace(config, **settings)
    except TypeError as error:
        raise InvalidParameter(f"unknown setting: {error}. EngineConfig lists those that there are") from error
