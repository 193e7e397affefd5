"""Entries for the journal."""

from husk.engine.logs import journald
from husk.engine.logs.messages import LogMessage
from husk.engine.logs.records import STDERR
from tests.unit.engine.logs.samples import TIME, container


def test_journal_entries() -> None:
    receiver = journald.receiver(container("journald", labels="b"), {"labels": "b"})
    (entry,) = receiver.encode([LogMessage(TIME, STDERR, b"two\nlines")])
    assert b"CONTAINER_NAME=box\n" in entry and b"PRIORITY=3\n" in entry and b"B=x y\n" in entry
    assert entry.endswith(b"MESSAGE\n\x09\0\0\0\0\0\0\0two\nlines\n")
