"""A watch on an event loop: one callback that computes for long keeps everybody else waiting, and is named in the log.

    the loop was held for 130 ms by decode (rpc/protobuf.py:81) < solve (builder/protocol/control.py:68)

What counts is processor time of the loop's thread, not the time of day: on a busy host a callback of a millisecond may
last a second, and that is nobody's fault. A thread looks at that clock every few milliseconds, and at the stack if
it moves. A callback is told from the next by the outermost frame of its stack, and by beats that the loop is asked
for while it computes: when one has come, others have had their turn. A look may come late, for each call of the system
gives the interpreter away and waits for it once more: what ran since the last beat can be one callback, what ran since
the last look need not.
"""

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

log = logging.getLogger(__name__)

# Seconds of processor time that one callback may take.
LIMIT = 0.1
# Seconds between two looks: what takes longer than the limit and two of them is surely seen.
_LOOK = 0.015
# Seconds between two beats, and how many come after each look at a loop that computes.
_BEAT, _BEATS = 0.01, 100
# A callback that goes on for this long is told of before it has ended.
_LONG = 10 * LIMIT
# How many frames of a stack are told.
_FRAMES = 6
_SOURCES = str(Path(__file__).parents[1]) + "/"

# What hears of a stall: for how many seconds the loop was held, and the frames that did it.
Tell = Callable[[float, str], None]


def log_stall(held: float, where: str) -> None:
    log.warning("the loop was held for %d ms by %s", held * 1000, where)


@contextmanager
def watched(
    loop: asyncio.AbstractEventLoop, tell: Tell = log_stall, delay: Callable[[], float] | None = None
) -> Iterator[None]:
    """Watch a loop from its own thread, as long as the block is open.

    `delay` tells for how long that thread was ready to run and did not, in seconds.
    """
    watch = _Watch(loop, tell, delay or _delay)
    thread = threading.Thread(target=watch.look_on, name="stalls", daemon=True)
    thread.start()
    try:
        yield
    finally:
        watch.ending.set()
        thread.join()


class Looks:
    """Successive looks at a thread, and what they say about its callbacks. All times are of its processor clock."""

    def __init__(self, now: float, tell: Tell) -> None:
        self._tell = tell
        self._before = now
        self._root: object | None = None  # of the callback that runs, the same at each look
        self._turn = 0
        self._since = now
        self._where = ""

    def idle(self) -> None:
        """The clock has not moved: no callback computes."""
        if self._root is not None:
            self._end(self._before)

    def running(
        self,
        now: float,
        root: object | None,
        turn: int,
        where: Callable[[], str],
        blind: float = 0.0,
        beaten: float = 0.0,
    ) -> None:
        """`root` stands for the callback that runs now, None between two; `turn` changes when others have run, which
        was last at `beaten`.

        `blind` is how long the one who looks wanted to look and got no processor for it.
        """
        if root is None or root is not self._root or turn != self._turn:
            self._end(self._before)
            # Python's threads take turns of milliseconds. What ran for so long without a look or a beat is one piece of
            # work that let no other thread run, and it has only just ended.
            begun = max(self._before, beaten)
            alone = now - begun - blind >= LIMIT
            self._root, self._turn, self._since = root, turn, begun if alone else now
        self._before = now
        if root is None:
            return
        if now - self._since >= LIMIT and not self._where:
            self._where = where()
        if now - self._since >= _LONG:
            self._end(now)

    def _end(self, now: float) -> None:
        """End the callback that ran, or has been told of; the time until `now` was its own."""
        where, self._where, self._root = self._where, "", None
        if where:
            self._tell(now - self._since, where)


class _Watch:
    def __init__(self, loop: asyncio.AbstractEventLoop, tell: Tell, delay: Callable[[], float]) -> None:
        self._delay = delay
        self.ending = threading.Event()
        self._loop = loop
        self._tell = tell
        self._thread = threading.get_ident()
        self._clock = time.pthread_getcpuclockid(self._thread)
        self._beats = 0  # how many are still to come
        self._beating = False
        self._turn = 0
        self._beaten = 0.0
        # Frames below each callback; not known before the first one.
        self._below = -1
        self._ask()

    def look_on(self) -> None:
        now, delay = self._now(), self._delay()
        looks = Looks(now, self._tell)
        while not self.ending.wait(_LOOK):
            before, now = now, self._now()
            late, delay = delay, self._delay()
            if now == before:
                looks.idle()
            elif self._below >= 0:
                self._look(looks, now, delay - late)

    def _look(self, looks: Looks, now: float, blind: float) -> None:
        """In a call of its own: no frame is kept from one look to the next but the root."""
        stack = _stack(sys._current_frames()[self._thread])
        stack = stack[: max(0, len(stack) - self._below)]
        root = stack[-1] if stack else None
        if root is not None:
            self._ask()
        looks.running(now, root, self._turn, lambda: _told(stack), blind, self._beaten)

    def _now(self) -> float:
        return time.clock_gettime(self._clock)

    def _ask(self) -> None:
        self._beats = _BEATS
        if self._beating:
            return
        self._beating = True
        try:
            self._loop.call_soon_threadsafe(self._beat)
        except RuntimeError:  # the loop is closed
            self.ending.set()

    def _beat(self) -> None:
        """In the loop, when what it did is done."""
        self._turn += 1
        self._beaten = time.thread_time()
        self._beating = self._beats > 0
        if self._beating:
            self._beats -= 1
            self._loop.call_later(_BEAT, self._beat)
        if self._below < 0:
            self._below = len(_stack(sys._getframe())) - 1


def _stack(frame: FrameType | None) -> list[FrameType]:
    """From the innermost to the outermost."""
    found = []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found


def _told(stack: list[FrameType]) -> str:
    """Name the function that runs, and the innermost of Husk's own that led there."""
    ours = [frame for frame in stack[1:] if frame.f_code.co_filename.startswith(_SOURCES)]
    return " < ".join(
        f"{frame.f_code.co_qualname} ({frame.f_code.co_filename.removeprefix(_SOURCES)}:{frame.f_lineno})"
        for frame in [*stack[:1], *ours[: _FRAMES - 1]]
    )


def _delay() -> float:
    """Seconds that this thread was ready to run and was not, because others did."""
    try:
        with open("/proc/thread-self/schedstat", "rb", buffering=0) as file:
            return int(file.read(100).split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0
