"""An engine inside a Python program: no daemon, no socket in the file system.

The program speaks with it as it would with a daemon: the API's own edge serves it over pairs of sockets, which costs
about a tenth of a millisecond a call and keeps one behaviour, one set of errors and one face for both. The engine is in
a thread with a loop of its own, so that a program that computes for a minute keeps no container waiting, and that the
program's own loop, executor, working directory, signals and settings are as they were.
"""

import asyncio
import hashlib
import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypedDict, Unpack

import msgspec

from husk.aio.loop_thread import ThreadBound
from husk.api.edge.server import ApiEdge
from husk.api.http.limits import HttpLimits
from husk.client.client import Client
from husk.client.http import Connection
from husk.client.misspelt import require_known
from husk.composition import Engine as Core
from husk.config import DEFAULT_DATA_ROOT, DEFAULT_EXEC_ROOT, AddressPool, Config, RuntimeConfig
from husk.errors import Forbidden, InvalidParameter
from husk.kernel import needs, process, thread_files

_PIECE = 1 << 18


class EngineConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of an engine in the process: where it keeps things, and what it gives containers by default.

    EngineConfig(data_root="/var/lib/app", bridge="none")
    """

    data_root: str | os.PathLike[str] = DEFAULT_DATA_ROOT  #: The directory of images, volumes and containers
    #: The directory of what lives as long as the machine runs; one below /run if None
    exec_root: str | os.PathLike[str] | None = None
    bridge: str = ""  #: The bridge of the default network; `none` for no default network
    bip: str = ""  #: The address of that bridge with its network: `10.1.0.1/24`
    address_pools: tuple[tuple[str, int], ...] = ()  #: The networks that subnets are taken from: (`10.0.0.0/8`, 24)
    default_runtime: str = ""  #: The OCI runtime; crun or runc if empty
    runtimes: Mapping[str, str] = {}  #: More OCI runtimes: name to program
    insecure_registries: tuple[str, ...] = ()  #: Registries without TLS, by name or network
    registry_mirrors: tuple[str, ...] = ()  #: Mirrors of Docker Hub
    log_driver: str = "json-file"  #: The log driver of containers
    log_opts: Mapping[str, str] = {}  #: Its options
    labels: tuple[str, ...] = ()  #: Labels of the engine

    def settings(self) -> Config:
        """Translate the settings into those of the engine.

        :returns: the configuration of an engine.
        """
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


class EngineOptions(TypedDict, total=False):
    """The keywords of `Engine.open`: the fields of `EngineConfig`.

    options: husk.EngineOptions = {"data_root": "/var/lib/app", "bridge": "none"}
    print(sorted(options))
    """

    data_root: str | os.PathLike[str]  #: The directory of images, volumes and containers
    #: The directory of what lives as long as the machine runs; one below /run if None
    exec_root: str | os.PathLike[str] | None
    bridge: str  #: The bridge of the default network; `none` for no default network
    bip: str  #: The address of that bridge with its network: `10.1.0.1/24`
    address_pools: tuple[tuple[str, int], ...]  #: The networks that subnets are taken from: (`10.0.0.0/8`, 24)
    default_runtime: str  #: The OCI runtime; crun or runc if empty
    runtimes: Mapping[str, str]  #: More OCI runtimes: name to program
    insecure_registries: tuple[str, ...]  #: Registries without TLS, by name or network
    registry_mirrors: tuple[str, ...]  #: Mirrors of Docker Hub
    log_driver: str  #: The log driver of containers
    log_opts: Mapping[str, str]  #: Its options
    labels: tuple[str, ...]  #: Labels of the engine


def _require_files(data_root: Path) -> None:
    needs.require_files(Path("/proc/self/mountinfo").read_text(errors="replace"), data_root)


def _exec_root(data_root: Path) -> Path:
    if data_root == DEFAULT_DATA_ROOT:
        return DEFAULT_EXEC_ROOT
    return Path(f"/run/husk-{hashlib.sha256(str(data_root).encode()).hexdigest()[:12]}")


class Engine(Client):
    """An engine of this process, with all that a client can do.

    async with husk.Engine.open(data_root="/var/lib/app") as engine:
        result = await engine.run("busybox", ["echo", "hi"], network="none")

    It lives in a thread of its own. The object belongs to the event loop that opened it; `connect` gives another one
    for another loop.
    """

    def __init__(self, home: "ThreadBound[ApiEdge]") -> None:
        super().__init__(self._dial)
        self._home = home

    @classmethod
    @asynccontextmanager
    async def open(
        cls, config: EngineConfig | None = None, *, detach: bool = False, **settings: Unpack[EngineOptions]
    ) -> AsyncIterator["Engine"]:
        """Open the engine of a data root, which nobody else may use meanwhile.

        At the end of the block the containers that still run are stopped.

        :param config: the settings.
        :param detach: let the containers run on at the end; the next engine of this data root finds them.
        :param settings: the fields of `EngineConfig`; they replace those of `config`.
        :returns: the engine.
        :raises Conflict: another process uses the data root; the message names it.
        :raises Forbidden: the process is not root's.
        :raises InvalidParameter: a setting is unknown or has no sense.
        """
        wanted = _config(config, settings).settings()
        if os.geteuid() != 0:
            raise Forbidden("an engine needs root: it mounts filesystems and makes namespaces")
        home = ThreadBound(_served(wanted), "husk-engine", thread_files.use_own)
        home.start()
        await home.entered()
        async with AsyncExitStack() as parts:
            parts.push_async_callback(home.left)
            engine = cls(home)
            parts.push_async_callback(engine.close)
            if not detach:
                parts.push_async_callback(engine._end_containers)
            yield engine

    async def _dial(self) -> Connection:
        taken = self._home.opened.result()
        ours, theirs = socket.socketpair()
        try:
            # Not cut off: half a connection would be nobody's. Who is cancelled closes the other end.
            await asyncio.shield(asyncio.wrap_future(self._home.submit(_taken(taken, theirs))))
            return Connection(*await asyncio.open_unix_connection(sock=ours, limit=_PIECE))
        except BaseException:
            ours.close()
            raise

    async def _end_containers(self) -> None:
        running = await self.containers.list()
        await asyncio.gather(*(container.stop() for container in running), return_exceptions=True)


@asynccontextmanager
async def _served(config: Config) -> AsyncIterator[ApiEdge]:
    """The engine, and the edge that it is asked through."""
    try:
        await asyncio.to_thread(_require_files, config.data_root)
        async with Core.open(config, keeps=True) as core:
            edge = ApiEdge(core, limits=HttpLimits())
            try:
                yield edge
            finally:
                await edge.close()
    finally:
        await process.reap_all()


async def _taken(edge: ApiEdge, theirs: socket.socket) -> None:
    try:
        await asyncio.get_running_loop().connect_accepted_socket(edge.server, theirs)
    except BaseException:
        theirs.close()
        raise


def _config(config: EngineConfig | None, settings: Mapping[str, Any]) -> EngineConfig:
    if config is not None and not isinstance(config, EngineConfig):
        raise InvalidParameter(
            f"Engine.open takes an EngineConfig, or settings by name as in data_root={str(config)!r}"
        )
    require_known(settings, EngineConfig.__struct_fields__, "an engine", "EngineConfig")
    return EngineConfig(**settings) if config is None else msgspec.structs.replace(config, **settings)
