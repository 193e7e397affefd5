"""Records that cannot be read are told once, and what they may concern is known."""

import logging

import pytest

from husk.swarm.state.unreadable import UnreadableRecords

REASON = ValueError("Invalid enum value 'hibernating'")


def test_a_task_concerns_its_service(caplog: pytest.LogCaptureFixture) -> None:
    unreadable = UnreadableRecords([("service", "old")])
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            unreadable.note(("task", "t"), b'{"service_id": "web", "status": 7}', REASON)
        unreadable.note(("task", "u"), b"{", REASON)
        unreadable.note(("service", "db"), b'{"service_id": "never"}', REASON)
    assert len(caplog.messages) == 3 and "task t" in caplog.messages[0] and "hibernating" in caplog.messages[0]
    assert [unreadable.concerns(id) for id in ("web", "db", "old", "never")] == [True, False, False, False]
    assert unreadable.services == {"old", "db"} and len(unreadable) == 4 and ("task", "u") in unreadable
    for name in list(unreadable):
        unreadable.forget(name)
    unreadable.forget(("task", "t"))
    assert not unreadable and not unreadable.concerns("web")
