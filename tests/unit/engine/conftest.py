"""Beginnings of tests of the engine's rooms: an empty store of records."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.full_store import FullStore


@pytest.fixture
def state(tmp_path: Path) -> Iterator[FullStore]:
    state = FullStore.open(tmp_path / "state.db")
    yield state
    state.close()
