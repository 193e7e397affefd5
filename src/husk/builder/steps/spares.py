"""A runtime that is loaded while a step runs, for the step that follows it.

There is one at most, for the runtime that was used last. It has an id and a bundle of its own, so that the step which
takes it gets these. If none does within a while it is ended: a step that lasts is not followed soon.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable
from pathlib import Path

from husk.aio.tasks import Tasks
from husk.builder.steps.drivers import Begun, Foreground
from husk.errors import HuskError
from husk.runtime.oci import OCIRuntime

log = logging.getLogger(__name__)

_KEPT_FOR = 1.0


class Spares:
    def __init__(self, foreground: Foreground, bundle: Callable[[str], Path], kept_for: float = _KEPT_FOR) -> None:
        self._foreground = foreground
        self._bundle = bundle
        self._kept_for = kept_for
        self._tasks = Tasks()
        self._spare: tuple[OCIRuntime, Begun] | None = None
        self._preparing = False
        self._expiry: asyncio.TimerHandle | None = None
        self._closed = False

    def take(self, runtime: OCIRuntime) -> Begun | None:
        """One for this runtime, if it is ready. It is the caller's now."""
        if self._spare is None or self._spare[0] != runtime:
            return None
        _, begun = self._spare
        self._spare = None
        self._stop_waiting()
        if begun.waits:
            return begun
        self._tasks.spawn(begun.discard(), "end a spare runtime")
        return None

    def prepare(self, runtime: OCIRuntime) -> None:
        """A step has begun to run: have one ready for the next, in the background."""
        if runtime.reads_pipes and self._spare is None and not self._preparing and not self._closed:
            self._preparing = True
            self._tasks.spawn(self._prepare(runtime), "prepare a spare runtime")

    async def close(self) -> None:
        self._closed = True
        await self._tasks.join()
        self._expire()
        await self._tasks.join()

    async def _prepare(self, runtime: OCIRuntime) -> None:
        id = secrets.token_hex(32)
        begun = self._foreground.begin(self._bundle(id), id, runtime)
        try:
            await begun.start()
        except HuskError as error:
            # The next step starts its own, and tells what is wrong.
            log.debug("no spare runtime: %s", error.message)
            await begun.discard()
            return
        finally:
            self._preparing = False
        self._spare = runtime, begun
        self._expiry = asyncio.get_running_loop().call_later(self._kept_for, self._expire)

    def _expire(self) -> None:
        self._stop_waiting()
        if self._spare is not None:
            _, begun = self._spare
            self._spare = None
            self._tasks.spawn(begun.discard(), "end a spare runtime")

    def _stop_waiting(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
