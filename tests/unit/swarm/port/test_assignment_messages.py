"""Messages between a manager and a node."""

import pytest

from husk.errors import InvalidParameter
from husk.registry.auth import Credentials
from husk.swarm.model.placement import NodeFacts
from husk.swarm.port.assignment_messages import (
    AssignedTask,
    AssignedValue,
    AssignmentUpdate,
    Report,
    Reports,
    decoded,
    encoded,
)
from tests.unit.swarm.manager.test_planner import make_service, make_task


def test_what_is_told_arrives():
    told = AssignmentUpdate(
        all=True,
        node=NodeFacts(id="n", hostname="alpha", labels={"a": "b"}, plugins=frozenset({("Log", "x")})),
        tasks=[AssignedTask(task=make_task(1), service=make_service(), credentials=Credentials("user", "word"))],
        values=[AssignedValue(kind="secret", id="s", data=b"\x00\xff")],
        gone=["t"],
        dropped=[("secret", "old")],
    )
    assert decoded(encoded(told), AssignmentUpdate) == told
    reports = Reports(reports=[Report(task_id="t", status=make_task(1).status), Report(task_id="u")])
    assert decoded(encoded(reports), Reports) == reports


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"reports": [{"task_id": 3}]}', b"\xff"])
def test_what_is_no_message(body: bytes):
    with pytest.raises(InvalidParameter):
        decoded(body, Reports)
