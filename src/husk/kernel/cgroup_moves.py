"""Makes it fast to move a process into a cgroup, by what can be done before the move.

A move takes a lock that every fork and every exit of the host takes too. The kernel makes that cheap for them: whoever
wants to move first waits for a grace period (5 to 20 ms, more on a busy host), unless somebody moved a moment ago. The
runtime makes such a move for every container and every exec, some milliseconds after the daemon knew that it would. So
the daemon makes a move of its own at once, into the cgroup where it already is, which changes nothing; when the
runtime's turn comes, the grace period is over or at least under way. `bench.exec` shows what that saves.
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path

from husk.kernel.cgroups import ROOT

log = logging.getLogger(__name__)

# A move is quick for about two grace periods after the last one.
_LASTS = 0.01
_OWN = Path("/proc/self/cgroup")


class Moves:
    """Makes the next move into a cgroup quick. On hosts that do not let us, it does nothing."""

    def __init__(
        self,
        own: Path = _OWN,
        root: Path = ROOT,
        clock: Callable[[], float] = time.monotonic,
        executor: Executor | None = None,
    ) -> None:
        """`own` says in which cgroup this process is, `root` is where the tree is. Moves are made by the `executor`."""
        self._own, self._clock, self._executor = own, clock, executor
        self._path = _own_path(own)
        self._procs = _procs(self._path, root)
        self._last = -_LASTS
        self._moving: asyncio.Future[None] | None = None

    def expect(self) -> None:
        """A process is about to be moved: have the kernel get ready, in the background."""
        moving = self._moving is not None and not self._moving.done()
        if self._procs is None or moving or self._clock() - self._last < _LASTS:
            return
        self._moving = asyncio.get_running_loop().run_in_executor(self._executor, self._move, self._procs)

    def moved(self) -> None:
        """Somebody else has moved a process just now: the next move is quick anyway."""
        self._last = self._clock()

    def _move(self, procs: Path) -> None:
        try:
            # Somebody may have moved the daemon elsewhere; it is not for us to undo that.
            if _own_path(self._own) == self._path:
                procs.write_bytes(b"0")
        except OSError as error:
            log.debug("cannot prepare the kernel for moves between cgroups: %s", error)
            self._procs = None
        self.moved()


def _own_path(own: Path) -> str:
    """This process's cgroup in the v2 tree; empty where there is none."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return ""
    return next((line.removeprefix("0::") for line in lines if line.startswith("0::")), "")


def _procs(path: str, tree: Path) -> Path | None:
    """The file that lists the processes of our own cgroup, if it is where the path says and lists us."""
    if not path or ".." in path:
        return None
    for root in (tree, tree / "unified"):
        procs = root / path.lstrip("/") / "cgroup.procs"
        try:
            if str(os.getpid()) in procs.read_text().split():
                return procs
        except OSError:
            continue
    return None
