"""Puts rules back that somebody removes: `nft flush ruleset` is part of many firewall scripts."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from husk.aio.tasks import Tasks
from husk.errors import SystemFault
from husk.kernel.nftwatch import RuleWatch

log = logging.getLogger(__name__)

# Whoever flushes rules usually writes new ones directly afterwards: ours come when that is done. Where that fails,
# perhaps because they are still at it, it is tried again, later each time.
_PAUSE, _LONGEST_PAUSE = 0.3, 5.0


class Guarded(Protocol):
    """A table of ours. The methods block: they are called from a thread."""

    @property
    def table(self) -> str: ...

    def intact(self) -> bool:
        """Return True if everything of the table is there. Raises OSError where that cannot be seen."""
        ...

    def apply(self) -> None:
        """Write the whole table, whatever it is now."""
        ...


class Guardian:
    """Looks at the tables whenever something was removed from one, and writes again what is not whole."""

    def __init__(
        self,
        guarded: Sequence[Guarded],
        watch: Callable[[Iterable[str]], RuleWatch] = RuleWatch,
        pause: float = _PAUSE,
    ) -> None:
        """`watch` begins to hear what is removed from tables; the look comes `pause` seconds later."""
        self._watching, self._pause = watch, pause
        self._guarded = guarded
        self._watch: RuleWatch | None = None
        self._tasks = Tasks()
        self._checking = False
        # What was told of tables that could not be looked at, or written.
        self._troubles: dict[str, str] = {}

    def open(self) -> None:
        try:
            self._watch = self._watching(guarded.table for guarded in self._guarded)
        except OSError as error:
            log.warning("rules that somebody removes come back only with SIGHUP: %s", error)
            return
        asyncio.get_running_loop().add_reader(self._watch.fileno(), self._noticed)

    async def restore(self) -> None:
        """Write all tables again, in case somebody has removed something unnoticed."""
        for guarded in self._guarded:
            await asyncio.to_thread(guarded.apply)

    async def close(self) -> None:
        if self._watch is not None:
            asyncio.get_running_loop().remove_reader(self._watch.fileno())
            self._watch.close()
            self._watch = None
        await self._tasks.cancel_all()

    def _noticed(self) -> None:
        if self._watch is not None and self._watch.removed():
            self._check_soon(self._pause)

    def _check_soon(self, pause: float) -> None:
        if not self._checking:
            self._checking = True
            self._tasks.spawn(self._check(pause), "check firewall rules")

    async def _check(self, pause: float) -> None:
        try:
            await asyncio.sleep(pause)
        finally:
            self._checking = False
        for guarded in self._guarded:
            try:
                if not await asyncio.to_thread(guarded.intact):
                    log.warning("somebody has removed rules of table %s: writing them again", guarded.table)
                    await asyncio.to_thread(guarded.apply)
            except (SystemFault, OSError) as error:
                if self._troubles.get(guarded.table) != str(error):
                    log.error("the rules of table %s cannot be checked or written: %s", guarded.table, error)
                self._troubles[guarded.table] = str(error)
            else:
                self._troubles.pop(guarded.table, None)
        if self._troubles:
            # Nobody tells of it again.
            self._check_soon(min(2 * pause, _LONGEST_PAUSE))
