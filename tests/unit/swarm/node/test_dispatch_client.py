"""Heartbeats of a worker; assignments over the port are in test_dispatcher_desk.py."""

from unittest.mock import AsyncMock

import pytest

from husk.errors import Conflict, HuskError, InvalidParameter
from husk.swarm.model.heartbeats import PERIOD
from husk.swarm.model.node import NodeDescription
from husk.swarm.model.services import SECOND
from husk.swarm.node import dispatch_client
from husk.swarm.node.dispatch_client import HeartbeatSender
from husk.swarm.port.assignment_messages import HeartbeatReply, encoded
from husk.swarm.port.faults import TooMany
from tests.support.waiting import until_async


@pytest.mark.parametrize("refusal", [TooMany("it has just said what it is"), InvalidParameter("it has 10^9 labels")])
async def test_a_node_that_cannot_say_what_it_is_lives_all_the_same(refusal: HuskError) -> None:
    calls = AsyncMock(heartbeat=AsyncMock(return_value=encoded(HeartbeatReply(period_ns=PERIOD))))
    calls.describe.side_effect = refusal
    pulse = HeartbeatSender(calls, NodeDescription(hostname="beta"))
    assert await pulse.beat() == PERIOD and pulse.trouble == ""
    calls.describe.side_effect = None
    for _ in range(2):
        await pulse.beat()
    assert calls.describe.await_count == 2, "it is said once more, and then no more"


async def test_a_node_whose_release_is_too_far_away_says_so_and_lives() -> None:
    calls = AsyncMock(heartbeat=AsyncMock(return_value=encoded(HeartbeatReply(period_ns=PERIOD))))
    calls.describe.side_effect = Conflict("too far apart")
    pulse = HeartbeatSender(calls, NodeDescription(hostname="beta"))
    for _ in range(2):
        assert await pulse.beat() == PERIOD and pulse.trouble == "too far apart"
    calls.describe.side_effect = None
    await pulse.beat()
    assert pulse.trouble == "", "its manager is another now"


async def test_a_fault_does_not_silence_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch_client, "SECOND", PERIOD * 1000)
    calls = AsyncMock(
        heartbeat=AsyncMock(side_effect=[KeyError("a fault of ours"), encoded(HeartbeatReply(period_ns=PERIOD))])
    )
    pulse = HeartbeatSender(calls)
    pulse.start()
    await until_async(lambda: calls.heartbeat.await_count > 1, "it says once more that it lives")
    await pulse.close()


async def test_a_node_is_heard_as_often_as_the_manager_says() -> None:
    calls = AsyncMock(heartbeat=AsyncMock(return_value=encoded(HeartbeatReply(period_ns=2 * SECOND))))
    pulse = HeartbeatSender(calls)
    assert await pulse.beat() == 2 * SECOND and calls.heartbeat.await_args.args == (PERIOD / SECOND,)
    assert await pulse.beat() == 2 * SECOND and calls.heartbeat.await_args.args == (2,), "the next may hear in time"
    calls.heartbeat.return_value = encoded(HeartbeatReply(period_ns=1))
    assert await pulse.beat() == SECOND, "however short it is said to be"
