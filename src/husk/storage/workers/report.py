"""The pipe that a worker's answers come out of, as the daemon reads it."""

import os

from husk.storage.workers.messages import Answer, Answers
from husk.storage.workers.pipes import read_some


class Report:
    """`fd` is its own from now on."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._answers = Answers()

    async def next(self) -> Answer | None:
        """The next answer; None when the worker has gone without one."""
        while (answer := self._answers.next()) is None:
            data = await read_some(self._fd)
            if not data:
                return None
            self._answers.feed(data)
        return answer

    def close(self) -> None:
        os.close(self._fd)
