"""The tar of a layer, packed while the files that it is of still come from a client: what the daemon knows of it.

    tar = trees.ahead(copy, below)              # nothing is done yet
    await mirrors.sync(..., ahead=tar)          # a worker packs beside, if it is worth it (`sync.pack_ahead`)
    await trees.apply([copy], ..., ahead=tar)   # if it is the tar of what was copied, it becomes the layer's blob
    await tar.close()                           # else it goes, and the worker, too

It is a guess at what a copy will make, and is thrown away where it was wrong, or where the cache has the result.
Whoever copies tells the digest of the headers that the tar must have (`workers.tar_heads`). What it begins with, the
directories above the files, is known before: it is the tar of a copy of nothing.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Self

from husk.aio.tasks import Tasks
from husk.builder.store.workers.dialogue import Dialogue
from husk.errors import HuskError
from husk.storage.workers.answers import Answer, Packed
from husk.storage.workers.parts import MARK, AheadPlan, Blob

_SECOND = 10**9
_LONGEST_LEAD = 64 << 10

Below = Callable[[], Awaitable[str | None]]
"""The stack that files are going to be copied to; None if it is not here."""

Lead = Callable[[int], Awaitable[bytes | None]]
"""The beginning of the tar, of files from a directory of this time (nanoseconds); None if that cannot be told."""


class AheadTar:
    """One of them; `close` may be called at any time."""

    def __init__(self, make_file: Callable[[], Path], lead: Lead) -> None:
        self._make_file = make_file
        self._find_lead = lead
        self.lead = b""
        self._time = int(time.time()) * _SECOND
        self._file: Path | None = None
        self._element = ""
        self._tasks = Tasks()
        self._ending = Tasks()
        self._worker: Dialogue | None = None
        self._packing: asyncio.Task[Answer | None] | None = None
        self._is_taken = False
        self._closed = False

    def open(self) -> AheadPlan | None:
        """Make the file of the tar, and return the plan for its worker; None if it is closed, or was opened before."""
        if self._closed or self._file is not None:
            return None
        self._file = self._make_file()
        return AheadPlan(str(self._file), self._time)

    async def begin(self) -> None:
        """Tell the worker what the tar begins with, as soon as that is known."""
        if self._closed:
            return
        lead = None
        with contextlib.suppress(HuskError):  # whoever copies is told the same
            lead = await self._find_lead(self._time)
        if lead is None or len(lead) > _LONGEST_LEAD or self._file is None or self._closed:
            return
        # On a full disk nothing is packed ahead: whoever copies is told of it.
        with contextlib.suppress(OSError), self._file.open("r+b", buffering=0) as file:
            # The mark comes last: whoever sees it sees all.
            os.pwrite(file.fileno(), lead, len(MARK))
            os.pwrite(file.fileno(), MARK, 0)
            self.lead = lead

    def follow(self, worker: Dialogue) -> None:
        """All files have come, and this worker still packs them."""
        if self._closed:
            worker.stop()
            return
        self._worker = worker
        self._packing = self._tasks.spawn(worker.outcome(), "pack a layer ahead", awaited=True)

    def received(self, element: str) -> None:
        """The files are this element of a stack."""
        self._element = element

    @contextlib.asynccontextmanager
    async def taken(self, stacks: Sequence[str]) -> AsyncIterator[Self | None]:
        """For a copy from these stacks, if it is a tar of one of them; it goes afterwards if nobody has moved it."""
        if self._packing is None or self._closed or self._is_taken or self._element not in stacks:
            yield None
            return
        self._is_taken = True
        try:
            yield self
        finally:
            await self._end()

    @property
    def path(self) -> str:
        return str(self._file or "")

    async def blob(self, heads: str) -> Blob | None:
        """The complete tar if it has these headers, and there are such; None if it is another one, or there is none."""
        if self._packing is None or not heads:
            return None
        await asyncio.wait([self._packing])
        answer = None if self._packing.cancelled() else self._packing.result()
        return answer.blob if isinstance(answer, Packed) and answer.heads == heads else None

    async def close(self) -> None:
        """Nobody wants it any more, but for one who has taken it."""
        self._closed = True
        if not self._is_taken:
            await self._end()

    async def _end(self) -> None:
        await self._ending.to_its_end(self._let_go(), "throw away what was packed ahead")

    async def _let_go(self) -> None:
        await self._tasks.cancel_all()
        if self._worker is not None:
            self._worker.stop()
        if self._file is not None and self._file.exists():
            # It may be large, and then this takes a while.
            await asyncio.to_thread(self._file.unlink, missing_ok=True)
