"""Puts rules back that somebody removes: `nft flush ruleset` is part of many firewall scripts."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Protocol

from husk.errors import SystemFault
from husk.kernel.nftwatch import RuleWatch
from husk.tasks import Tasks

log = logging.getLogger(__name__)

# Whoever flushes rules usually writes new ones directly afterwards: ours come when that is done.
_PAUSE = 0.3


class Guarded(Protocol):
    """A table of ours. The methods block: they are called from a thread."""

    @property
    def table(self) -> str: ...

    def intact(self) -> bool:
        """Whether everything of it is there."""
        ...

    def apply(self) -> None:
        """Write the whole table, whatever it is now."""
        ...


class Guardian:
    """Looks at the tables whenever something was removed from one, and writes again what is not whole."""

    def __init__(self, guarded: Sequence[Guarded]) -> None:
        self._guarded = guarded
        self._watch: RuleWatch | None = None
        self._tasks = Tasks()
        self._checking = False

    def open(self) -> None:
        try:
            self._watch = RuleWatch(guarded.table for guarded in self._guarded)
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
        if self._watch is not None and self._watch.removed() and not self._checking:
            self._checking = True
            self._tasks.spawn(self._check(), "check firewall rules")

    async def _check(self) -> None:
        try:
            await asyncio.sleep(_PAUSE)
        finally:
            self._checking = False
        for guarded in self._guarded:
            try:
                if not await asyncio.to_thread(guarded.intact):
                    log.warning("somebody has removed rules of table %s: writing them again", guarded.table)
                    await asyncio.to_thread(guarded.apply)
            except SystemFault as error:
                log.error("the rules of table %s cannot be checked or written: %s", guarded.table, error)
