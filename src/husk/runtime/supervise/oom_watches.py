"""Watches that tell at once that a container is out of memory: conmon then touches a file in its bundle."""

from collections.abc import Callable

from husk.kernel.inotify import IN_CLOSE, Watches
from husk.runtime.supervise.conmon import Bundle


class OomWatches:
    """Told at once when conmon notes that a container is out of memory, for any number of containers."""

    def __init__(self) -> None:
        self._watches = Watches()

    def add(self, bundle: Bundle, told: Callable[[], None]) -> int:
        """The number is for `remove`. OSError where the host has no watches left."""
        return self._watches.add(bundle.directory, IN_CLOSE, lambda name: told() if name == b"oom" else None)

    def remove(self, number: int) -> None:
        self._watches.remove(number)

    def close(self) -> None:
        self._watches.close()
