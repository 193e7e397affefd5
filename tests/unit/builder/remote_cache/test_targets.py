"""Targets of caches."""

from typing import Any

import pytest

from husk.builder.remote_cache.targets import Targets
from husk.errors import InvalidParameter
from husk.registry.manifest import OCI_MANIFEST, Descriptor
from husk.storage.blobs import BlobStore


class Target:
    def __init__(self):
        self.known, self.uploaded, self.named = set(), [], []

    async def has(self, digest):
        return digest in self.known

    async def upload(self, source):
        self.uploaded.append((source.digest, b"".join([piece async for piece in source.read(0)])))

    async def put_manifest(self, reference, body, media_type):
        self.named.append((reference, body, media_type))


class Registry:
    def __init__(self, target):
        self._target = target

    async def target(self, reference, auth):
        return self._target


class Store:
    def __init__(self):
        self.written = {}

    async def write(self, digest, size, chunks):
        self.written[digest] = b"".join([chunk async for chunk in chunks])
        return True


class Session:
    def __init__(self):
        self.store = Store()

    def content(self, name):
        assert name == "local:/there"
        return self.store

    async def credentials(self, host):
        return None


@pytest.fixture
def blobs(tmp_path):
    store = BlobStore.open(tmp_path)
    yield store
    store.close()


async def described(blobs, data):
    return Descriptor(media_type=OCI_MANIFEST, digest=await blobs.put(data), size=len(data))


async def test_a_registry_gets_what_it_does_not_have(blobs):
    target: Any = Target()
    one, two = await described(blobs, b"one"), await described(blobs, b"two")
    target.known.add(one.digest)
    registry: Any = Registry(target)
    session: Any = Session()
    place = await Targets(registry, blobs).open("registry", {"ref": "registry.example/cache"}, session)
    for descriptor in (one, two):
        await place.write(descriptor)
    await place.name_it(two, b"two")
    assert target.uploaded == [(two.digest, b"two")]
    assert target.named == [("latest", b"two", OCI_MANIFEST)]


async def test_a_client_gets_blobs(blobs):
    one = await described(blobs, b"one")
    session: Any = Session()
    registry: Any = None
    place = await Targets(registry, blobs).open("local", {"dest": "/there"}, session)
    await place.write(one)
    await place.name_it(one, b"one")
    assert session.store.written == {one.digest: b"one"}


@pytest.mark.parametrize(("kind", "attributes"), [("registry", {}), ("local", {}), ("local", {"dest": "/there"})])
async def test_a_place_that_is_not_named(blobs, kind, attributes):
    registry: Any = None
    with pytest.raises(InvalidParameter, match="requires"):
        await Targets(registry, blobs).open(kind, attributes, None)
