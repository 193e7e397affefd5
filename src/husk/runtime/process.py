"""A process of the host, held by a descriptor: its number may come to mean another one, the descriptor does not."""

import os
import signal
from collections.abc import Sequence

from husk.kernel import process
from husk.kernel.process import Completed


class Process:
    """A process; one that is gone when this is made has ended."""

    def __init__(self, pid: int) -> None:
        try:
            self._pidfd = process.pidfd_open(pid)
        except ProcessLookupError:
            self._pidfd = -1

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
        if self._pidfd >= 0:
            await process.wait_exit(self._pidfd)

    def close(self) -> None:
        """Let go of it; it runs on. Safe to call twice."""
        pidfd, self._pidfd = self._pidfd, -1
        if pidfd >= 0:
            os.close(pidfd)


async def run(argv: Sequence[str], timeout: float) -> Completed:
    """Run a program to its end."""
    return await process.run(argv, timeout=timeout)


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
