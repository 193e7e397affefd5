"""The library without `await`, for scripts and notebooks.

    import husk

    print(husk.run("busybox", "echo hi").stdout)

A thread of its own keeps the engine open between calls, and closes it when the program ends. The caller's thread may
have a running event loop, as in a notebook: it is not used.
"""

import atexit
import os
import socket
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Unpack

from husk.aio.loop_thread import ThreadBound
from husk.client.client import Client, connect
from husk.client.execs import Result
from husk.client.keywords import RunOptions
from husk.client.spec import Command, ContainerSpec
from husk.library.embedded import Engine, EngineConfig

_SOCKET = "/run/husk.sock"
# Where the engine is, when nothing is said: the first of these variables that is set tells.
_VARIABLES = ("HUSK_HOST", "DOCKER_HOST")


def run(
    image: str | ContainerSpec,
    command: Command = None,
    *,
    data_root: str | os.PathLike[str] | None = None,
    **spec: Unpack[RunOptions],
) -> Result:
    """Run a container to its end and remove it, without `await`.

    print(husk.run("busybox", "echo hi").stdout)

    The engine is that of the daemon that `HUSK_HOST` or `DOCKER_HOST` names, or that listens on /run/husk.sock. Without
    one, or with a `data_root`, it is an engine of this process, which needs root.

    :param image: the name of an image, or a specification.
    :param command: the command and its arguments; a single string is taken apart as a shell does it.
    :param data_root: the directory of an engine of this process.
    :param spec: the other arguments of `Client.run`.
    :returns: the exit code and the output.
    :raises NotFound: there is no such image, and `pull` forbids to get it.
    :raises Forbidden: an engine of this process is needed, and the process is not root's.
    """
    return _ENGINES.run(image, command, data_root, **spec)


def close() -> None:
    """Close the engines that calls of `run` have opened. It happens by itself when the program ends."""
    _ENGINES.close()


Opened = AbstractAsyncContextManager[Client]


def _own(data_root: str | os.PathLike[str] | None) -> Opened:
    return Engine.open(EngineConfig() if data_root is None else EngineConfig(data_root=os.path.abspath(data_root)))


def opening(data_root: str | os.PathLike[str] | None) -> Opened:
    """Open the engine that is meant where no address is said: a daemon's, or one of this process."""
    address = None if data_root is not None else _address(_SOCKET)
    return _own(data_root) if address is None else connect(address)


class BlockingEngines:
    """The engines that calls without `await` have opened, by where they are."""

    def __init__(
        self,
        connect: Callable[[str], Opened] = connect,
        own: Callable[[str | os.PathLike[str] | None], Opened] = _own,
        socket: str = _SOCKET,
        process: Callable[[], int] = os.getpid,
    ) -> None:
        """`connect` and `own` open those of daemons and of this process; `socket` is where a daemon listens, if nothing
        is said, and `process` tells which process this is."""
        self._connect = connect
        self._own = own
        self._socket = socket
        self._this = process
        self._lock = threading.Lock()
        self._open: dict[object, ThreadBound[Any]] = {}
        self._process = 0

    def run(
        self, image: str | ContainerSpec, command: Command, data_root: str | os.PathLike[str] | None = None, **spec: Any
    ) -> Result:
        engine = self._get(None if data_root is not None else _address(self._socket), data_root)
        call = engine.submit(engine.opened.result().run(image, command, **spec))
        try:
            return call.result()
        except BaseException:
            call.cancel()  # ctrl-C: the container goes
            raise

    def _get(self, address: str | None, data_root: str | os.PathLike[str] | None) -> ThreadBound[Client]:
        key = address if address is not None else (None, data_root and os.path.abspath(data_root))
        with self._lock:
            if self._process != self._this():
                # Threads do not come along when a process forks.
                self._open.clear()
                self._process = self._this()
                at_exit(self.close)
            kept = self._open.get(key)
            if kept is None:
                kept = ThreadBound(self._own(data_root) if address is None else self._connect(address), "husk-run")
                kept.start()
                try:
                    kept.opened.result()
                except BaseException:
                    kept.leave()
                    raise
                self._open[key] = kept
        return kept

    def close(self) -> None:
        with self._lock:
            kept, self._open = list(self._open.values()), {}
        for each in kept:
            each.close()


def _address(place: str) -> str | None:
    """Find the address of a daemon; None where there is none."""
    for name in _VARIABLES:
        if found := os.environ.get(name):
            return found
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(place)
        except OSError:
            return None
    return f"unix://{place}"


def at_exit(work: Callable[[], None]) -> None:
    """Call it when the program ends, before the pools of threads do: `atexit` alone comes after them."""
    register: Callable[[Callable[[], None]], object] = getattr(threading, "_register_atexit", atexit.register)
    register(work)


_ENGINES = BlockingEngines()
