"""The client without `await`: `husk.connect_sync`, and the twin of each of the client's classes.

    import husk

    with husk.connect_sync() as engine:
        print([box.name for box in engine.containers.list()])

`sync.pyi`, which `scripts/twins` makes of the client, has the types.
"""

import os
import threading
from types import TracebackType
from typing import Any, Self

from husk.aio.loop_thread import ThreadBound
from husk.client.client import Client, connect
from husk.client.compose import Project
from husk.client.console import Console
from husk.client.container import Container
from husk.client.containers import Containers
from husk.client.execs import Exec
from husk.client.files import Files
from husk.client.image import Image
from husk.client.images import Images
from husk.client.logs import Output
from husk.client.networks import Network, Networks
from husk.client.plugins import Plugin, Plugins
from husk.client.ports import Port
from husk.client.service_files import Configs, Secrets, ServiceConfig, ServiceSecret
from husk.client.services import Service, Services, ServiceTasks, Task
from husk.client.swarm import Node, Nodes, Swarm
from husk.client.volumes import Volume, Volumes
from husk.library import blocking
from husk.library.twins import Bound, Twin, know, twin_of

# A connection that speaks another protocol, and a client for another loop, are of no use without a loop.
_ClientTwin: type[Twin] = twin_of(Client, without=("upgrade", "connect", "close"))
SyncConfigs = twin_of(Configs)
SyncConsole = twin_of(Console)
SyncContainer = twin_of(Container, awaited={"exec": "execing"})
SyncContainers = twin_of(Containers)
SyncExec = twin_of(Exec)
SyncFiles = twin_of(Files)
SyncImage = twin_of(Image)
SyncImages = twin_of(Images)
SyncNetwork = twin_of(Network)
SyncNetworks = twin_of(Networks)
SyncNode = twin_of(Node)
SyncNodes = twin_of(Nodes)
SyncOutput = twin_of(Output)
SyncPlugin = twin_of(Plugin)
SyncPlugins = twin_of(Plugins)
SyncPort = twin_of(Port)
SyncProject = twin_of(Project)
SyncSecrets = twin_of(Secrets)
SyncService = twin_of(Service)
SyncServiceConfig = twin_of(ServiceConfig)
SyncServices = twin_of(Services)
SyncServiceSecret = twin_of(ServiceSecret)
SyncServiceTasks = twin_of(ServiceTasks)
SyncSwarm = twin_of(Swarm)
SyncTask = twin_of(Task)
SyncVolume = twin_of(Volume)
SyncVolumes = twin_of(Volumes)


class SyncClient(_ClientTwin):  # type: ignore[misc, valid-type]
    """A client of one engine without `await`: all that `Client` has, under the same names.

    with husk.connect_sync() as engine:
        print(engine.run("busybox", "echo hi", network="none").text)

    What is awaited there is called here; `async for` is `for`, `async with` is `with`. `exec` runs a process to its
    end; `execing` gives it, to read its lines as they come. What else is read by `await`, as a log, has `result()`.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections, and an engine of this process. It happens by itself when the program ends."""
        _OPEN.discard(self._bound.kept)
        self._bound.kept.close()


def connect_sync(
    address: str = "", *, context: str = "", data_root: str | os.PathLike[str] | None = None
) -> SyncClient:
    """Connect to an engine without `await`.

    with husk.connect_sync() as engine:
        print(engine.version()["Version"])

    Without an address it is found as for `husk.run`: a daemon that `HUSK_HOST` or `DOCKER_HOST` names or that listens
    on /run/husk.sock, else an engine of this process, which needs root. A notebook keeps the client in a name, and
    closes it with `close`.

    :param address: `unix:///path`, `tcp://host:port` or `ssh://user@host`.
    :param context: the name of a docker context, in place of an address.
    :param data_root: the directory of an engine of this process.
    :returns: the client, which a `with` block closes at its end.
    :raises InvalidParameter: the address has no known form, or there is no such context.
    :raises Unavailable: nobody answers there.
    :raises Forbidden: an engine of this process is needed, and the process is not root's.
    """
    opening = connect(address, context=context) if address or context else blocking.opening(data_root)
    kept: ThreadBound[Client] = ThreadBound(opening, "husk-sync")
    kept.start()
    try:
        client = kept.opened.result()
    except BaseException:
        kept.leave()
        raise
    _OPEN.add(kept)
    return SyncClient(Bound(kept), client)


class _Opened:
    """The connections that are open; they are closed when the program ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: set[ThreadBound[Any]] = set()
        self._process = 0

    def add(self, kept: ThreadBound[Any]) -> None:
        with self._lock:
            if self._process != os.getpid():
                # Threads do not come along when a process forks.
                self._open.clear()
                self._process = os.getpid()
                blocking.at_exit(self._close)
            self._open.add(kept)

    def discard(self, kept: ThreadBound[Any]) -> None:
        with self._lock:
            self._open.discard(kept)

    def _close(self) -> None:
        for kept in list(self._open):
            kept.close()


_OPEN = _Opened()
know(Client, SyncClient)
