"""A container is ready when its port takes connections, its log says so, or a command or its health test succeeds."""

import asyncio
import re
from collections.abc import Mapping
from typing import Any, Protocol

from husk.client.logs import Output
from husk.client.looks import looks
from husk.client.spec import Command
from husk.errors import InvalidParameter, Unavailable
from husk.text.terminals import visible

_SHOWN = 2000


class Box(Protocol):
    """A container, as far as this module needs it."""

    @property
    def attrs(self) -> Mapping[str, Any]: ...
    @property
    def name(self) -> str: ...
    @property
    def short_id(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def ip(self) -> str: ...
    @property
    def ports(self) -> Mapping[str, list[tuple[str, int]]]: ...
    def exec(self, command: Command) -> Any: ...
    def logs(self, *, follow: bool = False, tail: int | str = "all") -> Output: ...
    async def reload(self) -> None: ...


async def until_ready(
    box: Box,
    *,
    port: int | None = None,
    log: str = "",
    exec: Command = None,
    health: bool = False,
    timeout: float = 60.0,
) -> None:
    """Return when all that is asked for holds. Unavailable says what does not, and what the container has written."""
    missing = "it does not run"
    try:
        async with asyncio.timeout(timeout):
            if port is not None:
                missing = f"port {port} takes no connections"
                await _port(box, port)
            if log:
                missing = f"no line of its log matches {log!r}"
                await _log(box, log)
            if exec is not None:
                missing = f"{exec!r} does not succeed in it"
                await _succeeds(box, exec)
            if health:
                missing = "its health test does not succeed"
                await _healthy(box)
    except TimeoutError:
        raise await _failure(box, f"is not ready after {timeout:g} seconds: {missing}") from None


async def _port(box: Box, port: int) -> None:
    """The container's own address is tried, then the host's that leads to it: an engine elsewhere has only that."""
    async for _ in looks():
        places = [*([(box.ip, port)] if box.ip else []), *box.ports.get(f"{port}/tcp", [])]
        for host, number in places:
            try:
                _, writer = await asyncio.open_connection(
                    "127.0.0.1" if host in ("0.0.0.0", "::", "") else host, number
                )
            except OSError:
                continue
            writer.close()
            return
        await _require_running(box, f"port {port} was never open")


async def _log(box: Box, pattern: str) -> None:
    wanted = re.compile(pattern)
    lines = box.logs(follow=True).lines()
    async for line in lines:
        if wanted.search(line):
            return
    await _require_running(box, f"no line of its log matched {pattern!r}")
    raise await _failure(box, "has no log to follow")


async def _succeeds(box: Box, command: Command) -> None:
    async for _ in looks():
        try:
            if (await box.exec(command)).exit_code == 0:
                return
        except InvalidParameter as error:
            raise await _failure(box, f"cannot run {command!r}: {error.message}") from None
        await _require_running(box, f"{command!r} did not succeed")


async def _healthy(box: Box) -> None:
    async for _ in looks():
        await _require_running(box, "its health test did not succeed")
        health = box.attrs["State"].get("Health")
        if health is None:
            raise await _failure(box, "has no health test: give it healthcheck=husk.Healthcheck(...)")
        if health["Status"] == "healthy":
            return


async def _require_running(box: Box, missing: str) -> None:
    await box.reload()
    if box.status not in ("running", "restarting", "paused"):
        code = box.attrs["State"]["ExitCode"]
        raise await _failure(box, f"ended with exit code {code} before it was ready: {missing}")


async def _failure(box: Box, what: str) -> Unavailable:
    try:
        written = visible((await box.logs(tail=50)).decode(errors="replace").strip()[-_SHOWN:])
    except Exception as error:
        written = f"({error})"
    return Unavailable(f"container {box.name or box.short_id} {what}. It wrote:\n{written or '(nothing)'}")
