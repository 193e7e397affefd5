"""Work in numbered pieces that two processes share."""

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from husk.builder.store.workers.aside import Aside


class _Fault(NamedTuple):
    number: int
    what: str = ""
    path: bytes = b""


def share(count: int, work: Callable[[int], None], processors: int = 0) -> None:
    """Call `work` for each number: two processes do, each of which takes the next one when it is done with one.

    With one processor (0: as many as this process may use) one process does all.
    """
    processors = processors or len(os.sched_getaffinity(0))
    with open(os.memfd_create("pieces", os.MFD_CLOEXEC), "w+b", buffering=0) as numbers:
        # Both have one position in it.
        numbers.write(b"".join(number.to_bytes(4, "big") for number in range(count)))
        numbers.seek(0)

        def following() -> bytes:
            # Without this both may get the same: the kernel looks after the position in files with a name alone.
            fcntl.lockf(numbers, fcntl.LOCK_EX)
            try:
                return os.read(numbers.fileno(), 4)
            finally:
                fcntl.lockf(numbers, fcntl.LOCK_UN)

        def take() -> bytes:
            while number := following():
                work(int.from_bytes(number, "big"))
            return b""

        def take_aside() -> bytes:
            try:
                return take()
            except OSError as error:
                path = os.fsencode(error.filename or b"")
                return msgspec.msgpack.encode(_Fault(error.errno or errno.EIO, error.strerror or str(error), path))

        with contextlib.ExitStack() as stack:
            aside = None
            if count > 1 and processors > 1:
                with contextlib.suppress(BlockingIOError):  # the host has no process left
                    aside = stack.enter_context(Aside(take_aside))
            take()
            if aside is not None and (answer := aside.answer()) != b"":
                fault = msgspec.msgpack.decode(answer, type=_Fault) if answer else _Fault(errno.EIO, "a process died")
                raise OSError(fault.number, fault.what, os.fsdecode(fault.path))
