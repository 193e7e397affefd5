"""A catalog of images on a store of its own."""

import pytest

from husk.engine.images.catalog import ImageCatalog
from husk.storage.state.store import StateStore


@pytest.fixture
def catalog(state: StateStore) -> ImageCatalog:
    return ImageCatalog(state)
