"""A layer store in a temporary directory."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.layers import Store


@pytest.fixture(autouse=True)
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """No power fails here: the disk of whoever else uses this file system need not be waited for."""
    monkeypatch.setattr("husk.storage.layers.writeback.sync_file_system", lambda path: None)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    if os.geteuid() != 0:
        pytest.skip("unpacking makes devices and changes owners: it needs root")
    store = Store(tmp_path)
    await store.open()
    yield store
    await store.close()
