"""Places that paths lead to: clients ask for the same few again and again."""

from typing import Generic, TypeVar

T = TypeVar("T")

# So many paths are remembered, if they are not longer.
_MOST = 2048
_LONGEST = 256


class KnownPlaces(Generic[T]):
    """Places by method and path, as they come; never many, and none of a long path."""

    def __init__(self) -> None:
        self._found: dict[tuple[bytes, bytes], T] = {}

    def get(self, method: bytes, path: bytes) -> T | None:
        return self._found.get((method, path))

    def keep(self, method: bytes, path: bytes, place: T) -> None:
        if len(path) <= _LONGEST:
            if len(self._found) >= _MOST:
                self._found.clear()
            self._found[method, path] = place
