"""A part of a worker's work that a second process does meanwhile, on another processor.

    with Aside(work) as aside:
        ...                       # the rest of the work
        answer = aside.answer()   # what `work` gave

The second process is a fork of this one: it sees what the worker sees, and ends with it.
"""

import os
import signal
from collections.abc import Callable
from typing import NoReturn, Self

from husk.kernel import jail
from husk.storage.workers.fault import tell_fault


class Aside:
    def __init__(self, work: Callable[[], bytes]) -> None:
        self._reader, writer = os.pipe2(os.O_CLOEXEC)
        parent = os.pidfd_open(os.getpid())
        try:
            self._process = os.fork()
            if self._process == 0:
                _work(work, parent, writer)
        except BaseException:
            os.close(self._reader)
            raise
        finally:
            os.close(parent)
            os.close(writer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """It ends, though it be at work."""
        if self._process:
            os.kill(self._process, signal.SIGKILL)
            self._wait()

    def answer(self) -> bytes | None:
        """Wait for what the work gave; None if it failed, which its log tells."""
        pieces = []
        while piece := os.read(self._reader, 1 << 16):
            pieces.append(piece)
        return b"".join(pieces) if self._wait() == 0 else None

    def _wait(self) -> int:
        _, status = os.waitpid(self._process, 0)
        self._process = 0
        os.close(self._reader)
        return status


def _work(work: Callable[[], bytes], parent: int, writer: int) -> NoReturn:
    status = 1
    try:
        jail.end_with(parent)
        left = memoryview(work())
        while left:
            left = left[os.write(writer, left) :]
        status = 0
    except BaseException:
        tell_fault()
    finally:
        os._exit(status)
