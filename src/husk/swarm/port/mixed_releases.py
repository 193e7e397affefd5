"""Reads what nodes of another release say: an entry with a value that is not known here is left out, and no other.

While a swarm is upgraded a node may hear of a state that only newer releases know. Whose entry it was is still read:
what is known of that task stays as it is. A message that is wrong in any other way is refused as a whole.
"""

import logging
from typing import TypeVar

import msgspec
from msgspec import Struct

from husk.errors import InvalidParameter
from husk.swarm.port.assignment_messages import AssignedTask, AssignmentUpdate, Report, Reports, decoded
from husk.text.documents import MalformedDocument, decode

log = logging.getLogger(__name__)

M = TypeVar("M", AssignmentUpdate, Reports)
# Different reasons that are logged; and how much of one, since the other side's words are in it.
_MOST, _LONGEST = 20, 200


class _Id(Struct):
    id: str


class _OfTask(Struct):
    """The ids that are read of an `AssignedTask`, or of a `Report`, that is not understood."""

    task: _Id | None = None
    task_id: str = ""


class MixedReader:
    """Each reason is logged once, by each reader."""

    def __init__(self) -> None:
        self._logged: set[str] = set()

    def told(self, body: bytes) -> AssignmentUpdate:
        return self._read(body, AssignmentUpdate, "tasks", AssignedTask)

    def reports(self, body: bytes) -> Reports:
        return self._read(body, Reports, "reports", Report)

    def _read(self, body: bytes, kind: type[M], entries: str, entry: type[Struct]) -> M:
        unread: list[str] = []
        try:
            message = decoded(body, kind)
        except InvalidParameter as error:
            message, unread = self._without_unknown(body, kind, entries, entry, error)
        # Nobody else's word counts for that.
        message.unread = unread
        return message

    def _without_unknown(
        self, body: bytes, kind: type[M], entries: str, entry: type[Struct], refused: InvalidParameter
    ) -> tuple[M, list[str]]:
        try:
            fields = decode(body, dict[str, msgspec.Raw])
            parts = decode(fields.get(entries, b"[]"), list[msgspec.Raw])
        except MalformedDocument:
            raise refused from None
        kept, unread = list[msgspec.Raw](), list[str]()
        for part in parts:
            try:
                decoded(bytes(part), entry)
                kept.append(part)
            except InvalidParameter as error:
                unread.append(_task_of(bytes(part), refused))
                self._log(error.message)
        if not unread:
            raise refused
        fields[entries] = msgspec.Raw(msgspec.json.encode(kept))
        return decoded(msgspec.json.encode(fields), kind), unread

    def _log(self, reason: str) -> None:
        reason = reason[:_LONGEST]
        if reason not in self._logged and len(self._logged) < _MOST:
            self._logged.add(reason)
            log.warning("a node of another release says what this one does not know, which is left out: %s", reason)


def _task_of(entry: bytes, refused: InvalidParameter) -> str:
    try:
        named = decoded(entry, _OfTask)
    except InvalidParameter:
        raise refused from None
    if not (id := named.task.id if named.task is not None else named.task_id):
        raise refused
    return id
