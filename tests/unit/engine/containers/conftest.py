"""A room of containers for each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.room import Room


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    room = Room(tmp_path / "engine")
    yield room
    await room.close()
