"""Records of the swarm that cannot be read here: a newer release wrote them, or they are damaged.

Such a record is left out, and no other. What it may concern stays as it is: tasks of a service that cannot be read, and
a service one of whose tasks cannot, since another task in its place might be one too many.
"""

import logging
from collections.abc import Iterable, Iterator

from msgspec import Struct

from husk.text.documents import MalformedDocument, decode

log = logging.getLogger(__name__)

Name = tuple[str, str]


class _OfService(Struct):
    """The service that is read of a task that is not understood."""

    service_id: str = ""


class UnreadableRecords:
    def __init__(self, names: Iterable[Name] = ()) -> None:
        """`names` are (kind, key)."""
        # With the service of a task, where that could be read.
        self._names: dict[Name, str] = dict.fromkeys(names, "")

    def __iter__(self) -> Iterator[Name]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def note(self, name: Name, body: bytes, reason: Exception) -> None:
        """It is logged once, however often it is written."""
        if name not in self._names:
            log.warning("%s %s cannot be read here, and stays as it is: %s", *name, reason)
        self._names[name] = _service_of(body) if name[0] == "task" else ""

    def forget(self, name: Name) -> None:
        """It can be read, or is gone."""
        self._names.pop(name, None)

    @property
    def services(self) -> frozenset[str]:
        return frozenset(key for kind, key in self._names if kind == "service")

    def concerns(self, service_id: str) -> bool:
        """Tell if one of the service's tasks cannot be read."""
        return service_id in self._names.values()


def _service_of(body: bytes) -> str:
    try:
        return decode(body, _OfService).service_id
    except MalformedDocument:
        return ""
