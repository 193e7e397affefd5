"""Calls of commands to an engine, and reports of failures: one line on stderr, and docker's exit codes."""

import gc
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from husk.cli.kit.late import late
from husk.cli.kit.place import HostChoice
from husk.cli.kit.writing import complain, document, say
from husk.client import blocking
from husk.client.address import resolve
from husk.client.client import Client, connect, connected
from husk.errors import CommandFailed, HuskError, NotFound, SystemFault

# Exit codes of `run` and `create` when it is not the container that fails.
NOT_RUN, NOT_EXECUTABLE, NO_SUCH_COMMAND = 125, 126, 127
ENDED_BY_USER = 130
# With patterns that only a start that has failed needs.
_plainly = late("husk.cli.kit.plain:plainly")
Work = Callable[[Client], Awaitable[int | None]]


def ask(place: HostChoice, work: Work, failed: int = 1) -> None:
    """Work with the engine, and leave with the exit code; with `failed` where the engine cannot be reached."""
    _leave(run(_asked(lambda: connect(place.host, context=place.context), work, failed, place.debug)))


def ask_plainly(place: HostChoice, work: Work, failed: int = 1) -> None:
    """The same for work that asks and is answered, one after the other: without an event loop, where the engine is
    on this machine. That halves the time of a command."""
    try:
        dial = blocking.dialer(resolve(place.host, place.context))
    except HuskError as error:
        complain(f"husk: {error.message}")
        raise SystemExit(failed) from None
    if dial is None:
        ask(place, work, failed)
        return
    gc.enable()
    try:
        code = blocking.run(_asked(lambda: connected(Client(dial)), work, failed, place.debug))
    except KeyboardInterrupt:
        code = ENDED_BY_USER
    _leave(code)


def _leave(code: int | None) -> None:
    if code:
        raise SystemExit(code)


def run(work: Coroutine[Any, Any, int | None]) -> int:
    """Its exit code; that of ctrl-C, which needs no words."""
    # A door: to load asyncio takes longer than all else that a short command does.
    import asyncio

    gc.enable()
    try:
        return asyncio.run(work) or 0
    except KeyboardInterrupt:
        return ENDED_BY_USER


async def _asked(
    connect: Callable[[], AbstractAsyncContextManager[Client]], work: Work, failed: int, debug: bool
) -> int | None:
    try:
        engine = await connect().__aenter__()
    except HuskError as error:
        complain(f"husk: {error.message}")
        return failed
    try:
        return await work(engine)
    except HuskError as error:
        complain(told(error, debug))
        return failed
    finally:
        await engine.close()


def told(error: HuskError, debug: bool = False) -> str:
    """Put a failure in docker's words: the engine's answer, what it told on the way, or what we found ourselves.

    A chain of messages of a runtime is told in plain words, whole where `debug` is wanted.
    """
    if error.from_engine:
        if not debug and "OCI runtime" in error.message and (plain := _plainly(error.message)) != error.message:
            return f"husk: {plain}"
        return f"Error response from daemon: {error.message}"
    return error.message if isinstance(error, CommandFailed | SystemFault) else f"husk: {error.message}"


async def each(
    names: Sequence[str],
    act: Callable[[str], Awaitable[object]],
    as_json: bool,
    shown: Callable[[str], str] = str,
    missing_is_well: bool = False,
) -> int:
    """Call `act` with each name, whatever becomes of the others; print the names, or what was wrong.

    Where `missing_is_well` one that is not there is told of, but is no failure.
    """
    results: list[dict[str, str | None]] = []
    failed = False
    for name in names:
        problem: str | None = None
        try:
            await act(name)
        except HuskError as error:
            problem = error.message
            failed = failed or not (missing_is_well and isinstance(error, NotFound))
            complain(told(error))
        else:
            if not as_json:
                say(shown(name))
        results.append({"Name": name, "Error": problem})
    if as_json:
        document(results)
    return 1 if failed else 0
