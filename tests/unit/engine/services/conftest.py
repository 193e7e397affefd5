"""A swarm of one, without a host."""

from pathlib import Path

import pytest

from husk.storage.state.store import StateStore
from tests.unit.engine.services.swarm_room import SwarmRoom


@pytest.fixture
async def room(tmp_path: Path, state: StateStore) -> SwarmRoom:
    made = SwarmRoom(tmp_path, state)
    await made.init()
    return made
