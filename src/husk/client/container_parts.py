"""The parts of a container that few programs ask for: single files, processes in it, its use of resources."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from husk.client import execs, files, readiness, tars
from husk.client.calls import Calls
from husk.client.execs import Exec, Limits
from husk.client.files import Files
from husk.client.path_stat import HEADER, PathStat, path_stat
from husk.client.ports import Port, port_of, shown
from husk.client.spec import Command
from husk.client.stats import Stats, stats
from husk.errors import NotFound


class _Container(files.Box, readiness.Box, Protocol):
    @property
    def id(self) -> str: ...
    def exec(self, command: Command, *, user: str = "") -> Any: ...


class ContainerParts:
    def __init__(self, container: _Container, calls: Calls) -> None:
        self._container = container
        self._calls = calls

    async def put(self, path: str, data: bytes | str | Path, mode: int) -> None:
        await files.put(self._container, path, data, mode)

    async def get(self, path: str) -> bytes:
        pieces = [piece async for piece in self._container.get_archive(path)]
        return tars.only_file(b"".join(pieces), path)

    async def stat(self, path: str) -> PathStat:
        """Describe a path. NotFound if there is nothing."""
        container = self._container
        try:
            headers = await self._calls.head(f"/containers/{container.id}/archive", {"path": path})
        except NotFound as error:
            # An answer to HEAD has no body, and so no words.
            error.args = (f"Could not find the file {path} in container {container.name or container.id}",)
            raise
        return path_stat(headers.get(HEADER, ""))

    def exec(
        self,
        input: bytes | None,
        stdin: bool,
        command: Command,
        *,
        limits: tuple[float | None, int | None, bool],
        **options: Any,
    ) -> Exec:
        """Another process in it."""
        document = execs.document(command, stdin=stdin or input is not None, **options)
        return Exec(self._calls, self._container.id, document, input, Limits(*limits))

    def stats(self, sample: Mapping[str, Any]) -> Stats:
        """Read a sample of its use of resources."""
        return stats(sample)

    def port(self, port: int | str, published: Mapping[str, Sequence[tuple[str, int]]], ip: str) -> Port:
        """One of its ports, as this host reaches it."""
        container = self._container
        return port_of(port, published, ip, self._calls.address, container.name or container.short_id)

    def files(self) -> Files:
        return Files(self._container)

    async def until_ready(self, **wanted: Any) -> None:
        await readiness.until_ready(self._container, **wanted)

    def shown(self, published: Mapping[str, Sequence[tuple[str, int]]]) -> str:
        """The ports in one line."""
        return shown(published)
