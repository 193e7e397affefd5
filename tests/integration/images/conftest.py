"""Sources of images: a real registry, and one that misbehaves on command."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.daemon import Daemon
from tests.support.fake_registry import FakeRegistry
from tests.support.images import forget_images, settled, stored
from tests.support.registry import Registry


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with Registry() as registry:
        yield registry


@pytest.fixture
async def fake() -> AsyncIterator[FakeRegistry]:
    async with FakeRegistry() as fake:
        yield fake


@pytest.fixture
def all_gone(daemon: Daemon) -> Iterator[None]:
    """Check that the test's images can be removed when it has ended, with all that was stored of them."""
    before = settled(daemon)
    yield
    forget_images(daemon)
    after = stored(daemon)
    assert (after.blobs, after.layers, after.images) == (before.blobs, before.layers, before.images)
