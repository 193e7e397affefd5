"""Beginnings of tests of the engine's rooms: an empty store of records."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from husk.storage.state.store import StateStore


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateStore]:
    state = StateStore.open(tmp_path / "state.db")
    yield state
    state.close()
