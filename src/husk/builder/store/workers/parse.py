"""Foreign text is read here, away from the daemon's loop, with little memory and time: Dockerfiles, definitions.

What reads it is a module of a room above (`ParseJob.module`), with a class

    class Answerer:
        def turn(self, question: bytes) -> Iterator[bytes]: ...

    def warm_up() -> None: ...      # whatever is made once, at the first question

One object answers all questions of a conversation, one after the other, each by any number of pieces. It knows the
errors of its subject; what is left are those of the means: memory, time, and nesting that is too deep.
"""

import importlib
import os
import resource
import signal
from collections.abc import Iterator
from typing import Any, Protocol

from husk.builder.store.workers.frames import END, FramePieces, frame
from husk.builder.store.workers.jobs import ParseJob
from husk.storage.workers.answers import Failed, Invalid
from husk.storage.workers.caller import Caller
from husk.storage.workers.fault import tell_fault

_INPUT, _OUTPUT = 0, 1
_READ_SIZE = 1 << 18
# From the signal that the time is up to the end of a process that does not hear it, in seconds.
_GRACE = 2


class Answerer(Protocol):
    def turn(self, question: bytes, /) -> Iterator[bytes]: ...


class TimeIsUp(BaseException):
    """All the time of a processor is used up. No error that anybody handles on the way."""


def main(job: ParseJob, caller: Caller) -> None:
    try:
        # The module may have to be loaded: that is not what is limited.
        answerer: Answerer = importlib.import_module(job.module).Answerer()
        _limit(job)
        for question in _questions():
            for piece in answerer.turn(question):
                _write(frame(piece))
                _write(piece)
            _write(END)
    except BrokenPipeError:
        return  # nobody wants to know any more
    except TimeIsUp:
        caller.answer(Invalid(too_long(job)))
    except MemoryError:
        caller.answer(Invalid(too_large(job)))
    except RecursionError:
        caller.answer(Invalid("it is nested too deeply to be read"))
    except Exception as error:
        tell_fault()
        caller.answer(Failed(f"{type(error).__name__}: see the daemon's log"))


def too_long(job: ParseJob) -> str:
    return f"it takes more than {job.seconds} s of a processor to be read"


def too_large(job: ParseJob) -> str:
    return f"it takes more than {job.memory >> 20} MiB of memory to be read"


def _limit(job: ParseJob) -> None:
    with open("/proc/self/statm") as file:
        own = int(file.read().split()[0]) * os.sysconf("SC_PAGESIZE")
    resource.setrlimit(resource.RLIMIT_AS, (own + job.memory, own + job.memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime) + job.seconds
    signal.signal(signal.SIGXCPU, _time_is_up)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + _GRACE))


def _time_is_up(*_: Any) -> None:
    raise TimeIsUp


def _questions() -> Iterator[bytes]:
    """One after the other; each is one piece."""
    frames = FramePieces()
    while data := os.read(_INPUT, _READ_SIZE):
        frames.feed(data)
        yield from frames.pieces()


def _write(data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(_OUTPUT, left) :]
