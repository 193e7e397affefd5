"""An index of images on a store of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from husk.engine.images.index import ImageIndex
from husk.storage.state import StateStore


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateStore]:
    state = StateStore.open(tmp_path / "state.db")
    yield state
    state.close()


@pytest.fixture
def index(state: StateStore) -> ImageIndex:
    return ImageIndex(state)
