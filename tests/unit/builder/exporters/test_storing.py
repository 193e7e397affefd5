"""Bundles in the store: records, names, and what of a former image goes."""

from typing import Any

import pytest

from husk.builder.exporters.storing import name_stored, store_bundle
from husk.builder.jobs.results import Predicate
from husk.engine.images.catalog import ImageCatalog
from husk.registry import reference
from husk.registry.reference import digest_of
from husk.storage.state.store import StateStore
from tests.unit.builder.exporters.test_bundle import PLAIN, bundled, layer, one, two

NAME = reference.parse("app:1")


class Store:
    def __init__(self, state: StateStore) -> None:
        self.catalog = ImageCatalog(state)
        self.blobs = self
        self.released: list[str] = []
        self.published: list[str] = []
        self.tell = lambda action, image, name="": self.published.append(action)

    async def put(self, body):
        return digest_of(body)

    async def put_all(self, *bodies):
        return [digest_of(body) for body in bodies]

    async def release(self, chain, content):
        self.released += content


@pytest.fixture
def store(state: StateStore) -> Any:
    return Store(state)


async def test_one_image_keeps_the_blobs_of_its_manifest(store):
    bundle = (await bundled(one(), None, layer("a", PLAIN))).bundle
    await store_bundle(store, bundle, [NAME])
    image = store.catalog.by_name(NAME)
    assert image.manifest == bundle.root.descriptor.digest
    assert image.packed == bundle.images[0].packed
    assert set(image.content) <= store.catalog.content()
    assert store.published == ["create", "tag"]
    await store_bundle(store, bundle, [])
    assert store.released == image.content


async def test_an_index_with_all_that_it_names(store):
    result = two()
    result.predicates = {"linux/arm64": [Predicate(type="t", body=b"{}")]}
    bundle = (await bundled(result, None, layer("a", PLAIN))).bundle
    await store_bundle(store, bundle, [NAME])
    index = store.catalog.index_by_name(NAME)
    assert index.digest == bundle.root.descriptor.digest
    assert index.complete
    assert [bool(entry.image) for entry in index.manifests] == [True, True, False]
    assert len(index.manifests[2].blobs) == 2
    assert store.catalog.look_up(index.digest).image_index == index
    other = NAME.with_digest(index.digest)
    await name_stored(store, bundle, [other])
    assert store.catalog.target(other) == index.digest


async def test_what_is_gone_gets_no_name(store):
    bundle = (await bundled(one(), None, layer("a", PLAIN))).bundle
    await name_stored(store, bundle, [NAME])
    assert store.catalog.target(NAME) == ""
