"""Dependencies of a service are waited for, as long as they can still come true."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from husk.client.client import Client
from husk.dashboard.awaiting import until_ready
from husk.errors import Conflict, Unavailable
from tests.support.fake_engine import FakeEngine


@pytest.fixture
async def engine() -> AsyncIterator[FakeEngine]:
    found = FakeEngine()
    yield found
    await found.close()


async def wait(engine: FakeEngine, condition: str, *states: dict[str, Any], patience: float = 9) -> None:
    """A service `web` that needs `db`, which is in these states one after the other."""
    engine.answers("GET", "/containers/db/json", *({"Id": "db", "State": state} for state in states))
    web = {"Id": "web", "Labels": {"com.docker.compose.depends_on": f"db:{condition}:false"}}
    db = {"Id": "db", "Labels": {"com.docker.compose.service": "db"}}
    engine.answers("GET", "/containers/json", [web, db])
    client = Client(engine.dial)
    try:
        listed = await client.containers.list(all=True)
        await until_ready(client, listed[0], listed, patience)
    finally:
        await client.close()


def health(status: str) -> dict[str, Any]:
    return {"Running": True, "Health": {"Status": status}}


async def test_one_that_starts_becomes_healthy(engine: FakeEngine) -> None:
    await wait(engine, "service_healthy", health("starting"), health("healthy"))
    assert len(engine.asked) >= 2


async def test_what_only_has_to_be_started_is_not_asked(engine: FakeEngine) -> None:
    await wait(engine, "service_started", {"Running": False})
    assert "/containers/db/json" not in [each.path for each in engine.asked]


@pytest.mark.parametrize(
    ("condition", "state", "told"),
    [
        ("service_healthy", health("unhealthy"), "is unhealthy"),
        ("service_healthy", {"Running": True}, "has no health check"),
        ("service_healthy", {"Running": False, "Health": {"Status": "healthy"}}, "does not run"),
        ("service_completed_successfully", {"Status": "exited", "ExitCode": 3}, "has ended with status 3"),
    ],
)
async def test_what_will_never_be_is_told(engine: FakeEngine, condition: str, state: dict[str, Any], told: str) -> None:
    with pytest.raises(Conflict, match=told):
        await wait(engine, condition, state)


async def test_it_is_not_waited_for_without_end(engine: FakeEngine) -> None:
    with pytest.raises(Unavailable, match="not ready after 0 seconds"):
        await wait(engine, "service_healthy", health("starting"), patience=0)
