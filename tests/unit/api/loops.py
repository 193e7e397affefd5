"""Both event loops that the edge must work on, and waiting for what has no event."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine

import pytest
import uvloop


def on_both_loops(test: Callable[..., Coroutine[object, object, None]]) -> Callable[..., None]:
    """Run an async test once on asyncio's own loop and once on uvloop."""

    def run(loop_factory: Callable[[], asyncio.AbstractEventLoop], **fixtures: object) -> None:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(test(**fixtures))

    signature = inspect.signature(test)
    first = inspect.Parameter("loop_factory", inspect.Parameter.KEYWORD_ONLY)
    run.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in [first, *signature.parameters.values()]]
    )
    run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
    loops = [pytest.param(asyncio.new_event_loop, id="asyncio"), pytest.param(uvloop.new_event_loop, id="uvloop")]
    marked: Callable[..., None] = pytest.mark.parametrize("loop_factory", loops)(run)
    return marked


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)
