"""The facts about a container that those who keep its log have to know."""

import asyncio
from typing import Any, Protocol

from husk.engine.model.container import Container


class LoggedContainer(Protocol):
    """A container with a log."""

    @property
    def id(self) -> str: ...

    @property
    def record(self) -> Container: ...

    def next_exit(self) -> asyncio.Future[Any]:
        """Done when the container's process has ended; whatever it gives is of no interest here."""
        ...
