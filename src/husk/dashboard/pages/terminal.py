"""A terminal in a container: an exec whose input and output go through a WebSocket.

Binary messages are what is typed and what the process writes. Text is JSON: {"resize": [columns, rows]} from the
browser; {"exit": code} or {"error": "…"} to it when the process has ended.
"""

import asyncio
import shlex
from contextlib import suppress

import msgspec

from husk.api.http import websocket
from husk.api.http.response import Answer, Unanswered
from husk.api.http.websocket import WebSocket
from husk.client.console import Console
from husk.client.execs import Exec
from husk.dashboard.pages.container import found, shown
from husk.dashboard.router import page, socket
from husk.dashboard.visit import BEAT, Visit
from husk.errors import HuskError, InvalidParameter
from husk.text.documents import MalformedDocument, decode

# The better shell of the two that images have.
_SHELL = ("/bin/sh", "-c", "command -v bash >/dev/null 2>&1 && exec bash || exec sh")
_LARGEST_SIZE = 1000
_LONGEST = 8192


class _Said(msgspec.Struct):
    """A browser's message besides typed input: the new size of its terminal."""

    resize: tuple[int, int]


async def terminal(visit: Visit) -> Answer:
    """`?command=` and `?user=` say what to run."""
    container = await found(visit)
    assets = visit.site.assets.names
    return shown(
        visit,
        container,
        "container_terminal.html",
        "/terminal",
        there="vendor/xterm.js" in assets and "vendor/addon-fit.js" in assets,
        command=visit.query.get("command"),
        user=visit.query.get("user"),
        begun="command" in visit.query,
    )


def _words(command: str) -> list[str]:
    """Split a command as a shell does. The library's time grows with the square of a word's length."""
    if len(command) > _LONGEST:
        raise InvalidParameter(f"the command has more than {_LONGEST} characters")
    return shlex.split(command)


async def connect(visit: Visit) -> Answer:
    if not websocket.asked_for(visit.request):
        raise InvalidParameter("a WebSocket is expected here")
    line = WebSocket(visit.request)
    try:
        # What is wrong is told inside of it: no script sees the answer to a handshake that failed.
        try:
            container = await found(visit)
            command = _words(visit.query.get("command")) or list(_SHELL)
            process = container.exec(
                command, tty=True, stdin=True, user=visit.query.get("user"), environment={"TERM": "xterm-256color"}
            )
            code = await _run(visit, line, process)
            if code is not None:
                await _tell(line, {"exit": code})
        except HuskError as error:
            await _tell(line, {"error": error.message})
        except ValueError as error:
            await _tell(line, {"error": f"the command cannot be read: {error}"})
        await line.close()
    except ConnectionError:
        line.abort()
    except BaseException:
        line.abort()
        raise
    return Unanswered()


async def _run(visit: Visit, line: WebSocket, process: Exec) -> int | None:
    """The exit code of the process; None where the browser, or its session, has gone before."""
    tasks = visit.site.tasks
    async with await process.open() as console:
        outward = tasks.spawn(_outward(line, console), "terminal to browser", awaited=True)
        inward = tasks.spawn(_inward(line, console), "browser to terminal", awaited=True)
        try:
            while not outward.done() and not inward.done():
                await asyncio.wait([outward, inward], timeout=BEAT, return_when=asyncio.FIRST_COMPLETED)
                if not visit.site.sessions.alive(visit.session):
                    return None
            if not outward.done() or outward.exception() is not None:
                return None
            code = (await process.inspect()).get("ExitCode")
            return None if code is None else int(code)
        finally:
            for task in (outward, inward):
                task.cancel()
            await asyncio.wait([outward, inward])
            await tasks.to_its_end(process.end(), "end a terminal")


async def _outward(line: WebSocket, console: Console) -> None:
    async for _, data in console:
        await line.send(data)


async def _inward(line: WebSocket, console: Console) -> None:
    with suppress(ConnectionError):
        async for message in line:
            if isinstance(message, bytes):
                await console.write(message)
            else:
                await _resize(console, message)


async def _resize(console: Console, message: str) -> None:
    """Resize the console. A message that is no size changes nothing."""
    try:
        columns, rows = decode(message, _Said).resize
    except MalformedDocument:
        return
    if 0 < columns <= _LARGEST_SIZE and 0 < rows <= _LARGEST_SIZE:
        with suppress(HuskError):  # it has ended meanwhile
            await console.resize(rows, columns)


async def _tell(line: WebSocket, document: object) -> None:
    await line.send(msgspec.json.encode(document).decode())


ROUTES = (
    page("/containers/{name}/terminal", terminal),
    socket("/containers/{name}/terminal/socket", connect),
)
