"""The caller of a worker, who wants the work done: standard input and output are for data, this is for answers."""

import contextlib
import os
import select
from collections.abc import Callable

import msgspec

from husk.storage.workers.answers import Answer, Failed, Invalid, Missing, Refused
from husk.storage.workers.messages import encode, printable

# Between two looks at what a process does meanwhile, in milliseconds.
_LOOKS = 200


class Caller:
    """`begun` is a file with the beginning of what standard input goes on with, if there is one."""

    def __init__(self, report: int, begun: int | None = None) -> None:
        self._report = report
        self._begun = begun

    def answer(self, answer: Answer) -> None:
        if isinstance(answer, Missing | Invalid | Refused | Failed):
            answer = msgspec.structs.replace(answer, message=printable(answer.message))
        left = memoryview(encode(answer))
        # The daemon was killed meanwhile: nobody wants to know.
        with contextlib.suppress(BrokenPipeError):
            while left:
                left = left[os.write(self._report, left) :]

    def begun(self) -> bytes:
        """Read the part of the input that was taken before the rest became ours."""
        if self._begun is None:
            return b""
        return os.pread(self._begun, os.fstat(self._begun).st_size, 0)

    def wait(self, process: int, over: Callable[[], bool] = lambda: False) -> bool:
        """Until a process, by its descriptor, has ended, or nobody wants an answer any more; True if it is `over`
        before, which is asked several times in a second."""
        poll = select.poll()
        poll.register(process, select.POLLIN)
        poll.register(self._report, 0)  # a pipe that nobody reads any more is an error, which is always told
        while not poll.poll(_LOOKS):
            if over():
                return True
        return False
