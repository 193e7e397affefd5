"""The interfaces of steps to the rest of the engine, and to whoever waits for them."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Protocol

from husk.builder.solver.sessions import Session
from husk.engine.model.container import Draft, Endpoint
from husk.engine.model.container_config import EndpointRequest
from husk.engine.networks.connector import Connected
from husk.runtime.assembly.step import Layered, StepMount
from husk.runtime.oci import OCIRuntime
from husk.runtime.sockets import Listeners
from husk.runtime.spec.document import SpecMount
from husk.runtime.supervise.begun import ContainerEnd
from husk.runtime.supervise.stdio import Streams


class Asking(Protocol):
    """The client that a step may ask for what it needs, as long as somebody is there, and what its user allows."""

    @property
    def session(self) -> Session | None: ...

    @property
    def granted(self) -> Collection[str]: ...


class Networks(Protocol):
    def endpoints(
        self, mode: str, requests: dict[str, EndpointRequest], links: list[str] | None = None
    ) -> dict[str, Endpoint]: ...

    async def connect(self, draft: Draft) -> Connected: ...

    async def disconnect(self, draft: Draft) -> None: ...


class Runtimes(Protocol):
    def get(self, name: str) -> OCIRuntime: ...


class Begun(Protocol):
    """`husk.runtime.supervise.begun`: a runtime that can be loaded before its bundle is there."""

    @property
    def container_id(self) -> str: ...

    @property
    def directory(self) -> Path: ...

    @property
    def waits(self) -> bool: ...

    async def start(self) -> None: ...

    async def run(self, config: bytes, output: Callable[[bytes, bool], None], command: str = "") -> ContainerEnd: ...

    async def end(self) -> None: ...

    async def discard(self) -> None: ...


class Foreground(Protocol):
    def expect(self) -> None: ...

    def begin(self, directory: Path, container_id: str, runtime: OCIRuntime) -> Begun: ...

    async def talk(
        self, directory: Path, container_id: str, runtime: OCIRuntime, streams: Streams, command: str = ""
    ) -> ContainerEnd: ...

    async def talk_beside(
        self,
        directory: Path,
        container_id: str,
        runtime: OCIRuntime,
        spec: bytes,
        streams: Streams,
        command: str = "",
    ) -> ContainerEnd: ...


class StepRoots(Protocol):
    """`husk.runtime.assembly.step`."""

    @property
    def rootfs(self) -> Path: ...

    @property
    def sockets(self) -> Listeners: ...

    def assemble(
        self, root: Layered, mounts: Sequence[StepMount], hosts: str, resolv_conf: str
    ) -> tuple[SpecMount, ...]: ...

    def text_of(self, path: str) -> str: ...

    def make_directory(self, path: str, uid: int, gid: int) -> None: ...

    def write_bundle(self, config: dict[str, object]) -> bytes: ...

    def release(self) -> None: ...

    def unmount(self) -> None: ...

    def remove(self) -> None: ...
