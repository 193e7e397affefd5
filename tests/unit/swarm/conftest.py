"""A swarm of one, without a host."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from husk.storage.state.store import StateStore
from husk.swarm.model.placement import NodeFacts
from tests.support.full_store import FullStore
from tests.unit.swarm.swarm_room import SwarmRoom
from tests.unit.swarm.world import GIB, World


@pytest.fixture
def state(tmp_path: Path) -> Iterator[FullStore]:
    state = FullStore.open(tmp_path / "state.db")
    yield state
    state.close()


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
