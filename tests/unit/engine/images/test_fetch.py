"""Layers are fetched, wherever their blobs are."""

import asyncio

import pytest

from husk.engine.images.fetch import LayerFetcher, WantedLayer
from husk.engine.images.limiter import Limiter
from husk.engine.images.make import chain_ids
from husk.errors import InvalidParameter, NotFound
from husk.registry.manifest import OCI_LAYER, Descriptor
from tests.support.registry import digest_of

BLOBS = {digest_of(data): data for data in (b"one", b"two")}
WANTED = [
    WantedLayer(Descriptor(media_type=OCI_LAYER, digest=digest, size=len(data)), digest)
    for digest, data in BLOBS.items()
]
CHAIN = chain_ids(list(BLOBS))


class Place:
    def __init__(self):
        self.opened = []

    async def open(self, descriptor, again):
        self.opened.append(descriptor.digest)
        await asyncio.sleep(0)
        if descriptor.digest not in BLOBS:
            raise NotFound(descriptor.digest)
        again(1, 0.1, "because")
        yield BLOBS[descriptor.digest]


@pytest.fixture
def place():
    return Place()


@pytest.fixture
def fetcher(shelf):
    return LayerFetcher(shelf.store, Limiter(1))


async def test_a_chain_is_fetched_once(fetcher, place, shelf):
    assert not await fetcher.has(CHAIN)
    await asyncio.gather(*(fetcher.fetch(WANTED, place.open, shelf.told.append) for _ in range(2)))
    assert await fetcher.has(CHAIN)
    assert sorted(place.opened) == sorted(BLOBS)
    assert {"Pulling fs layer", "Downloading", "Retrying in 1 seconds", "Pull complete"} <= set(shelf.statuses)
    await fetcher.fetch(WANTED, place.open, shelf.told.append)
    assert len(place.opened) == 2


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (WantedLayer(WANTED[0].descriptor, WANTED[1].diff_id), InvalidParameter),
        (WantedLayer(Descriptor(digest=digest_of(b"gone"), size=4), digest_of(b"gone")), NotFound),
    ],
)
async def test_one_that_is_not_what_it_should_be_leaves_nothing(fetcher, place, shelf, wanted, error):
    with pytest.raises(error):
        await fetcher.fetch([wanted], place.open, shelf.told.append)
    assert not shelf.layers.records
    assert not shelf.layers.staged


async def test_who_shares_a_layer_with_a_stalled_registry_gets_it_from_its_own(shelf):
    fetcher = LayerFetcher(shelf.store, Limiter(1), patience=0.05)
    stalled = asyncio.Event()
    closed = []

    async def stall(descriptor, again):
        try:
            yield BLOBS[descriptor.digest][:1]
            stalled.set()
            await asyncio.Event().wait()
        finally:
            closed.append(descriptor.digest)

    place = Place()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        group.create_task(fetcher.fetch(WANTED, stall, shelf.told.append))
        await stalled.wait()
        group.create_task(fetcher.fetch(WANTED, place.open, shelf.told.append))
    assert await fetcher.has(CHAIN), "and the first one is content with that, too"
    assert set(place.opened) >= set(closed) and closed
    assert not shelf.layers.staged
