"""Servers that tests start: running inside a `with` block, and gone behind it, however far they came."""

from types import TracebackType
from typing import Self


class Server:
    def start(self) -> None:
        """Start it, and return when it answers."""
        raise NotImplementedError

    def close(self) -> object:
        """End it and take away all that it has made; safe to call after a start that failed."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
