"""An catalog of images on a store of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from husk.engine.images.catalog import ImageCatalog
from husk.storage.state.store import StateStore


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateStore]:
    state = StateStore.open(tmp_path / "state.db")
    yield state
    state.close()


@pytest.fixture
def catalog(state: StateStore) -> ImageCatalog:
    return ImageCatalog(state)
