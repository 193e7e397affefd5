"""Cancels a call at a chosen await, as whoever owns its task would."""

import asyncio
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any


class Cut:
    """The place where a call is cancelled: at its `at`-th await, as soon as it waits, or (`late`) when what it waits
    for is there but has not been looked at yet."""

    def __init__(self, at: int, late: bool) -> None:
        self.at = at
        self.late = late
        self.done = False

    async def through(self, call: Coroutine[Any, Any, object]) -> None:
        """Run the call, cut. CancelledError is what it is to end with."""
        await self._steps(call)

    @types.coroutine
    def _steps(self, call: Coroutine[Any, Any, object]) -> Generator[Any, Any, object]:
        task = asyncio.current_task()
        assert task is not None
        awaits, sent, thrown = 0, None, None
        while True:
            try:
                waited_for = call.send(sent) if thrown is None else call.throw(thrown)
            except StopIteration as ended:
                return ended.value
            if awaits == self.at:
                self.done = True
                if self.late and waited_for is not None:
                    waited_for.add_done_callback(lambda _: task.cancel())
                else:
                    task.get_loop().call_soon(task.cancel)
            awaits += 1
            sent, thrown = None, None
            try:
                sent = yield waited_for
            except BaseException as error:
                thrown = error


async def cut_everywhere(
    call: Callable[[], Coroutine[Any, Any, object]], check: Callable[[str], Awaitable[None]], least: int = 1
) -> int:
    """Cancel what `call` makes at its first await, the second and so on, until it gets through, in both ways; `check`
    looks after each. How many awaits there were."""
    awaits = 0
    for late in (False, True):
        at = 0
        while True:
            cut = Cut(at, late)
            task = asyncio.get_running_loop().create_task(cut.through(call()))
            outcome = (await asyncio.gather(task, return_exceptions=True))[0]
            if isinstance(outcome, Exception):
                raise AssertionError(f"cut at await {at} ({late=})") from outcome
            if not cut.done:
                break
            await check(f"cut at await {at} ({late=}), which ended with {outcome!r}")
            at += 1
        awaits = max(awaits, at)
    assert awaits >= least, "nothing was cut"
    return awaits
