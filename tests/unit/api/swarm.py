"""The edge on an engine whose services are real, and whose networks and containers are doubles."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from husk.storage.state.store import StateStore
from husk.swarm.model.settings import SwarmSpec
from tests.unit.api.fake_engine import FakeEngine
from tests.unit.swarm.swarm_room import SwarmRoom


@asynccontextmanager
async def swarm_behind(engine: FakeEngine, directory: Path) -> AsyncIterator[SwarmRoom]:
    state = StateStore.open(directory / "state.db")
    room = SwarmRoom(directory, state)
    engine.swarm = room.services  # type: ignore[assignment]
    try:
        yield room
    finally:
        state.close()


async def locked(room: SwarmRoom, engine: FakeEngine, directory: Path) -> SwarmRoom:
    """As after a start of the daemon: the swarm has autolock, and nobody has brought the key."""
    spec = SwarmSpec()
    spec.encryption_config.auto_lock_managers = True
    swarm = room.cluster.swarm
    await room.cluster.update(spec, swarm.version, worker_token=False, manager_token=False, unlock_key=False)
    again = SwarmRoom(directory, room.state)
    engine.swarm = again.services  # type: ignore[assignment]
    return again
