"""Where images come from: a real registry, and one that misbehaves on command."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.fake_registry import FakeRegistry
from tests.support.registry import Registry


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with Registry() as registry:
        yield registry


@pytest.fixture
async def fake() -> AsyncIterator[FakeRegistry]:
    async with FakeRegistry() as fake:
        yield fake
