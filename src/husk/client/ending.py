"""The end of a container: the engine waits for it from the moment it is asked, and then tells how it was."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from husk.client.calls import Calls, field
from husk.client.http import Response
from husk.errors import CommandFailed


class Ending(NamedTuple):
    """`oom_killed` is told by Husk only."""

    code: int
    oom_killed: bool


@asynccontextmanager
async def ending(calls: Calls, path: str, condition: str = "removed") -> AsyncIterator[Callable[[], Awaitable[Ending]]]:
    """Inside the block the engine waits already; the call gives the end that `condition` asks for.

    Who is cancelled in the call may call again.
    """
    async with (
        calls.answer("POST", f"{path}/wait", {"condition": condition}) as response,
        calls.tasks.awaited(_ended(response), "wait for an end") as ended,
    ):
        yield ended


def read(answer: Mapping[str, Any]) -> Ending:
    """Read the exit code and `OOMKilled` in an answer to `wait`; CommandFailed if the end could not be waited for."""
    code = int(field(answer, "StatusCode"))
    if error := (answer.get("Error") or {}).get("Message"):
        raise CommandFailed(error, code)
    return Ending(code, bool(answer.get("OOMKilled")))


async def _ended(response: Response) -> Ending:
    return read(json.loads(await response.read()))
