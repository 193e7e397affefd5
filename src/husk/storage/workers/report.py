"""The pipe that a worker's answers come out of, as the daemon reads it."""

import asyncio
import os

from husk.storage.workers.answers import Answer
from husk.storage.workers.messages import decode_answer
from husk.storage.workers.pipes import read_some

# Bytes of an answer that is decoded in a thread.
_LONG = 64 << 10


class AnswerReader:
    """Answers out of bytes as they come, in pieces of any size; what is not a whole one yet is kept."""

    def __init__(self) -> None:
        self._waiting = bytearray()
        # So many of them are known to have no end of a line: an answer may carry a large file.
        self._seen = 0

    def feed(self, data: bytes) -> None:
        self._waiting += data

    def next(self) -> Answer | None:
        """The next one, if all of it is here."""
        line = self.line()
        return None if line is None else decode_answer(line)

    def line(self) -> bytes | None:
        """The same, not decoded yet."""
        end = self._waiting.find(b"\n", self._seen)
        if end < 0:
            self._seen = len(self._waiting)
            return None
        line = bytes(memoryview(self._waiting)[:end])
        del self._waiting[: end + 1]
        self._seen = 0
        return line


class AnswerPipe:
    """`fd` is its own from now on."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._answers = AnswerReader()

    async def next(self) -> Answer | None:
        """The next answer; None when the worker has gone without one."""
        while (line := self._answers.line()) is None:
            data = await read_some(self._fd)
            if not data:
                return None
            self._answers.feed(data)
        # A list of many files, or a large one.
        return decode_answer(line) if len(line) < _LONG else await asyncio.to_thread(decode_answer, line)

    def close(self) -> None:
        os.close(self._fd)
