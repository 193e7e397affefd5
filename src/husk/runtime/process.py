"""A process of the host, held by a descriptor: its number may come to mean another one, the descriptor does not."""

import os
import signal
from collections.abc import Collection, Sequence

from husk.kernel import process
from husk.kernel.process import Completed as Completed


class Process:
    """A process that existed when this was made; ProcessLookupError where there was none."""

    def __init__(self, pid: int) -> None:
        self._pidfd = process.pidfd_open(pid)

    @property
    def has_ended(self) -> bool:
        """True if the process is gone, or only a zombie. True also after `close`."""
        return self._pidfd < 0 or process.has_ended(self._pidfd)

    def signal(self, number: int) -> bool:
        """False when it has ended already."""
        return self._pidfd >= 0 and process.send_signal(self._pidfd, number)

    def kill(self) -> bool:
        return self.signal(signal.SIGKILL)

    async def wait(self) -> None:
        """Return when it has ended. Any number may wait at once."""
        await process.wait_exit(self._pidfd)

    def close(self) -> None:
        """Let go of it; it runs on. Safe to call twice."""
        pidfd, self._pidfd = self._pidfd, -1
        if pidfd >= 0:
            os.close(pidfd)


async def run(argv: Sequence[str], timeout: float) -> Completed:
    """Run a program to its end."""
    return await process.run(argv, timeout=timeout)


class Processes:
    """The processes of this host, as the engine asks for them."""

    def open(self, pid: int) -> Process:
        return Process(pid)

    def start_time(self, pid: int) -> int | None:
        """Return when it started, in clock ticks since boot; None when it is gone. With the pid it names a process."""
        return process.start_time(pid)

    def kill_given(self, arguments: Collection[str]) -> None:
        """Kill what was started with one of these arguments, and wait for its end. Blocks."""
        process.kill_given(arguments)


def which(program: str, path: str = "") -> str | None:
    """Find a program of the host: in the directories of `path`, or of PATH; or there, if it is a path. None without it.

    As `shutil.which`, which would have every start of the daemon load all kinds of archives.
    """
    directories = (path or os.environ.get("PATH", os.defpath)).split(":") if "/" not in program else [""]
    for directory in directories:
        found = os.path.join(directory, program)
        if os.path.isfile(found) and os.access(found, os.X_OK):
            return found
    return None
