"""Messages by which a manager tells a node its tasks, and the node reports on them. Pure: messages in JSON.

A node is told first of all its tasks (`AssignmentUpdate.all` begins that, `AssignmentUpdate.complete` ends it), then of
each change. Values of secrets and configs come in messages of their own, for they may be large, and before the tasks
that need them.
"""

from typing import TypeVar

import msgspec
from msgspec import Struct

from husk.errors import InvalidParameter
from husk.registry.auth import Credentials
from husk.swarm.model.placement import NodeFacts
from husk.swarm.model.services import Service, Task, TaskStatus
from husk.text.documents import MalformedDocument, decode

M = TypeVar("M", bound=Struct)


class AssignedTask(Struct, kw_only=True, omit_defaults=True):
    """A task, with what is needed of its service. Credentials only where an image may have to be pulled."""

    task: Task
    service: Service | None = None
    credentials: Credentials | None = None
    # Why its secrets and configs cannot be had now.
    obstacle: str = ""


class AssignedValue(Struct, kw_only=True, omit_defaults=True):
    """A secret or a config."""

    kind: str
    id: str
    data: bytes
    templated: bool = False


class KnownRecord(Struct, frozen=True):
    """A record of the swarm's networks, or of what is on them."""

    kind: str
    key: str
    body: msgspec.Raw


class NetworkNews(Struct, kw_only=True, omit_defaults=True):
    """`all`: these are all the records that the node may know. `more`: what comes next belongs to it."""

    all: bool = False
    more: bool = False
    records: list[KnownRecord] = []
    gone: list[tuple[str, str]] = []
    data_path_port: int = 0


class AssignmentUpdate(Struct, kw_only=True, omit_defaults=True):
    """`all`: nothing that was told before counts any more. `gone` are tasks, `dropped` values as (kind, id)."""

    all: bool = False
    complete: bool = False
    node: NodeFacts | None = None
    tasks: list[AssignedTask] = []
    values: list[AssignedValue] = []
    gone: list[str] = []
    dropped: list[tuple[str, str]] = []
    # (node, HOST:PORT) of all managers, where that is news.
    managers: list[tuple[str, str]] = []
    # Before the tasks that need them.
    networks: NetworkNews | None = None
    # Never sent: tasks that were told of in words which this release does not know (`mixed_releases`).
    unread: list[str] = []


class Report(Struct, kw_only=True, omit_defaults=True):
    """The present state of a task on its node; without a status nothing is left of the task there."""

    task_id: str
    status: TaskStatus | None = None


class Reports(Struct, kw_only=True, omit_defaults=True):
    reports: list[Report]
    # Never sent, as `AssignmentUpdate.unread`.
    unread: list[str] = []


class ReportReply(Struct, kw_only=True, omit_defaults=True):
    """The answer to reports: the tasks that the manager takes none of, for they are not the node's or have ended."""

    refused: list[str] = []


class HeartbeatReply(Struct, kw_only=True, omit_defaults=True):
    """A node lives; the answer says in which time to say so again."""

    period_ns: int = 0


def encoded(message: Struct) -> bytes:
    return msgspec.json.encode(message)


def decoded(body: bytes, kind: type[M]) -> M:
    try:
        return decode(body, kind)
    except MalformedDocument as error:
        raise InvalidParameter(f"this is no message of a node: {error}") from None
