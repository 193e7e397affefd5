"""Images that are stored as they go out. The rest of the exporter's work is told in test_solve and with real
clients."""

from typing import Any

import pytest

from husk.builder.exporters.image import is_plain, name_stored, store_bundle, told_of, upload_of, without_inline_only
from husk.builder.exporters.options import read
from husk.builder.jobs.results import Predicate, Result
from husk.engine.images.catalog import ImageCatalog
from husk.registry import reference
from husk.registry.reference import digest_of
from husk.storage.state.store import StateStore
from tests.unit.builder.exporters.test_bundle import PLAIN, bundled, layer, one, two

SAID = Predicate(type="t", body=b"{}")
SAID_INLINE = Predicate(type="t", body=b"{}", inline_only=True)
REF: Any = object()


async def _cache(id, layers):
    return None


@pytest.mark.parametrize(
    ("attributes", "result", "plain"),
    [
        ({"name": "a"}, Result(), True),
        ({"push": "true"}, Result(), False),
        ({"store": "false"}, Result(), False),
        ({"name-canonical": "true"}, Result(), False),
        ({"annotation.a": "b"}, Result(), False),
        ({"compression": "gzip"}, Result(), False),
        ({}, Result(refs={"a": REF}), False),
        ({}, Result(predicates={"": [SAID]}), False),
        ({}, Result(predicates={"": []}), True),
        ({}, Result(inline_cache=_cache), False),
    ],
)
def test_plain_images(attributes, result, plain):
    assert is_plain(result, read(attributes, {})) is plain


def test_what_is_stated_without_being_asked_for_goes_out_only():
    result = without_inline_only(Result(predicates={"a": [SAID, SAID_INLINE], "b": [SAID_INLINE]}))
    assert result.predicates == {"a": [SAID], "b": []}


async def test_what_is_sent_ends_with_what_has_the_name():
    bundle = (await bundled(two(), None, layer("a", PLAIN))).bundle
    name = reference.parse("localhost:5000/a:1")
    sent = upload_of(bundle, name, by_digest=False)
    digests = [image.manifest.descriptor.digest for image in bundle.images]
    assert [where for where, _, _ in sent.manifests] == [*digests, "1"]
    assert (len(sent.layers), len(sent.blobs)) == (1, 2)
    assert upload_of(bundle, name, by_digest=True).manifests[-1][0] == bundle.root.descriptor.digest


async def test_what_clients_are_told():
    names = [reference.parse("a:1"), reference.parse("b:2")]
    told = told_of((await bundled(one(), None, layer("a", PLAIN))).bundle, names)
    assert set(told) == {
        "containerimage.digest", "containerimage.descriptor", "containerimage.config.digest", "image.name",
    }  # fmt: skip
    assert told["image.name"] == "docker.io/library/a:1,docker.io/library/b:2"
    told = told_of((await bundled(two(), None, layer("a", PLAIN))).bundle, [])
    assert set(told) == {"containerimage.digest", "containerimage.descriptor"}


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
