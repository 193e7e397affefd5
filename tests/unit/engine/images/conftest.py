"""A catalog of images on a store of its own, and all that is around it."""

from pathlib import Path

import pytest

from husk.engine.images.catalog import ImageCatalog
from husk.storage.state.store import StateStore
from tests.support.shelf import Shelf


@pytest.fixture
def catalog(state: StateStore) -> ImageCatalog:
    return ImageCatalog(state)


@pytest.fixture
def shelf(tmp_path: Path, state: StateStore) -> Shelf:
    return Shelf(tmp_path, state)
