"""A swarm of one, without a host."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from husk.engine.services.placement import NodeFacts
from husk.storage.state.store import StateStore
from tests.unit.engine.services.swarm_room import SwarmRoom
from tests.unit.engine.services.world import GIB, World


@pytest.fixture
async def room(tmp_path: Path, state: StateStore) -> SwarmRoom:
    made = SwarmRoom(tmp_path, state)
    await made.init()
    return made


@pytest.fixture
async def world(state: StateStore) -> AsyncIterator[World]:
    """A swarm of one node, with containers that are doubles."""
    made = World(state, NodeFacts(id="n", hostname="alpha", nano_cpus=4 * 10**9, memory=4 * GIB))
    made.start()
    yield made
    await made.close()
