"""Asks a worker that reads foreign text (`parse`): the daemon's own loop has nothing to do but to take what it says.

    parsers = Parsers(nursery)
    async with parsers.begin("husk.builder.frontend.reading.answerer") as parser:
        async for piece in parser.ask(question):
            ...

The worker ends with the block, whatever it is at. A text that takes too much memory or time is InvalidParameter.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Protocol

from husk.builder.store.workers.dialogue import Dialogue
from husk.builder.store.workers.frames import BadFrame, FramePieces, frame
from husk.builder.store.workers.jobs import ParseJob
from husk.errors import InvalidParameter, SystemFault
from husk.storage.workers.answers import Failed, Invalid
from husk.storage.workers.handle import WorkerDied
from husk.storage.workers.nursery import Nursery

MEMORY = 256 << 20
SECONDS = 20
# What comes of one question, in bytes.
MOST = 64 << 20
# A worker that says nothing for so long is stopped, or its host is: it uses no time of a processor that would end it.
_PATIENCE = 300.0


class Parser(Protocol):
    def ask(self, question: bytes, /) -> AsyncGenerator[bytes, None]:
        """Ask, and take the pieces of what is said to it, all of them."""
        ...


class Parsers:
    """Begins conversations. No more of them are at work at a time than there are processors: all they do is count."""

    def __init__(
        self, nursery: Nursery, *, memory: int = MEMORY, seconds: int = SECONDS, most: int = MOST, turns: int = 0
    ) -> None:
        self._nursery = nursery
        self._memory = memory
        self._seconds = seconds
        self._most = most
        self._turns = asyncio.Semaphore(turns or max(2, os.cpu_count() or 1))

    def expect(self, module: str) -> None:
        """A conversation will be wanted soon: have what it needs loaded meanwhile."""
        self._nursery.load(module)

    @asynccontextmanager
    async def begin(self, module: str) -> AsyncIterator[Parser]:
        self._nursery.load(module)
        job = ParseJob(module, self._memory, self._seconds)
        dialogue = await Dialogue.start(self._nursery, job)
        try:
            yield _Conversation(dialogue, self._turns, self._most, job)
        finally:
            dialogue.stop()


class _Conversation:
    def __init__(self, dialogue: Dialogue, turns: asyncio.Semaphore, most: int, job: ParseJob) -> None:
        self._dialogue = dialogue
        self._turns = turns
        self._most = most
        self._job = job
        self._frames = FramePieces()

    async def ask(self, question: bytes, /) -> AsyncGenerator[bytes, None]:
        async with self._turns, aclosing(self._pieces(question)) as pieces:
            async for piece in pieces:
                yield piece
                await asyncio.sleep(0)  # what is waiting in the pipe is not taken in one go

    async def _pieces(self, question: bytes) -> AsyncGenerator[bytes, None]:
        left = self._most
        try:
            await self._dialogue.write(frame(question))
            await self._dialogue.write(question)
            while True:
                async with asyncio.timeout(_PATIENCE):
                    data = await self._dialogue.read()
                if not data:
                    raise await self._end()
                left -= len(data)
                if left < 0:
                    raise InvalidParameter(f"what is made of it has more than {self._most >> 20} MiB")
                self._frames.feed(data)
                for piece in self._frames.pieces():
                    if not piece:
                        return
                    yield piece
        except WorkerDied:
            raise await self._end() from None
        except BadFrame as error:
            raise InvalidParameter(f"what is made of it is too large: {error}") from None
        except TimeoutError:
            raise SystemFault("the process that reads it says nothing") from None

    async def _end(self) -> InvalidParameter | SystemFault:
        """Return the error that says why the worker has ended."""
        match await self._dialogue.outcome():
            case Invalid(message):
                return InvalidParameter(message)
            case Failed(message):
                return SystemFault(f"it cannot be read: {message}")
        limits = f"{self._job.seconds} s of a processor or {self._job.memory >> 20} MiB of memory"
        return InvalidParameter(f"the process that reads it was ended: it takes more than {limits}")
