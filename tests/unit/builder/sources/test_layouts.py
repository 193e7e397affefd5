"""Images in an OCI layout of a client, with doubles of the client and of our images."""

import hashlib
import io
import json
import tarfile
from types import SimpleNamespace
from typing import Any

import pytest

from husk.builder.graph.operations import Source
from husk.builder.sources.layouts import Layout, LayoutSource, layout_of, named
from husk.errors import InvalidParameter, NotFound
from husk.registry.manifest import OCI_INDEX, OCI_MANIFEST, Platform


def digest_of(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Content:
    """Blobs by their digests; what is read is noted."""

    def __init__(self):
        self.blobs = {}
        self.read_ones = []

    def add(self, data):
        self.blobs[digest_of(data)] = data
        return digest_of(data)

    async def read(self, digest, offset=0):
        self.read_ones.append(digest)
        if digest not in self.blobs:
            raise NotFound(f"blob {digest}: not found")
        yield self.blobs[digest][:3]
        yield self.blobs[digest][3:]


class Images:
    def __init__(self):
        self.known = {}
        self.loaded = []

    def select(self, reference, platform):
        if reference not in self.known:
            raise NotFound(reference)
        return SimpleNamespace(image=self.known[reference])

    async def load(self, archive, platforms, quiet, report):
        data = b"".join([chunk async for chunk in archive])
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            files = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
        self.loaded.append(files)
        manifest = json.loads(files["index.json"])["manifests"][0]["digest"]
        config = json.loads(files[f"blobs/sha256/{manifest[7:]}"])["config"]["digest"]
        self.known[config] = SimpleNamespace(id=config, chain_ids=["sha256:chain"])


class Bench:
    def __init__(self):
        self.content, self.images = Content(), Images()
        self.layer = self.content.add(b"layer of the image")
        self.config = self.content.add(b'{"os": "linux"}')
        self.manifest = self.content.add(self.document(len(b"layer of the image")))
        self.asked = []
        session: Any = SimpleNamespace(content=self.store)
        self.watcher: Any = SimpleNamespace(session=session, status=lambda status: None)
        parts: Any = (self.images, SimpleNamespace(blobs=SimpleNamespace(read=self.read)), SimpleNamespace())
        self.source = LayoutSource(*parts)

    def document(self, size):
        config = {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": self.config, "size": 15}
        layer = {"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": self.layer, "size": size}
        return json.dumps({"mediaType": OCI_MANIFEST, "schemaVersion": 2, "config": config, "layers": [layer]}).encode()

    def store(self, name):
        self.asked.append(name)
        return self.content

    async def read(self, digest):
        return self.content.blobs[digest]

    async def describe(self, digest, platform=None):
        return await self.source.describe(Layout(digest, "layout"), platform, self.watcher)


@pytest.fixture
def bench():
    return Bench()


async def test_an_image_is_loaded_once(bench):
    found = await bench.describe(bench.manifest)
    assert (found.digest, found.config) == (bench.config, b'{"os": "linux"}')
    assert bench.asked == ["oci:layout"]
    (files,) = bench.images.loaded
    assert files[f"blobs/sha256/{bench.layer[7:]}"] == b"layer of the image"
    bench.content.read_ones.clear()
    source = Source(f"oci-layout://x@{bench.manifest}", {"oci.store": "layout"})
    assert await bench.source.key(source, None, bench.watcher) == bench.config
    fetched = await bench.source.fetch(source, None, bench.watcher)
    assert fetched.stack == "layer:sha256:chain"
    assert bench.layer not in bench.content.read_ones


async def test_what_an_image_is_can_be_asked_without_its_layers(bench):
    found = await bench.source.resolve(Source(f"oci-layout://layout@{bench.manifest}"), None, bench.watcher)
    assert (found.reference, found.digest) == (f"layout@{bench.manifest}", bench.manifest)
    assert found.config == b'{"os": "linux"}'
    assert bench.images.loaded == []


async def test_an_index_has_one_for_the_platform(bench):
    entry = {"mediaType": OCI_MANIFEST, "digest": bench.manifest, "size": 1}
    entry["platform"] = {"architecture": "arm64", "os": "linux"}
    index = bench.content.add(json.dumps({"mediaType": OCI_INDEX, "schemaVersion": 2, "manifests": [entry]}).encode())
    assert (await bench.describe(index, Platform("arm64", "linux"))).digest == bench.config
    with pytest.raises(NotFound):
        await bench.describe(index, Platform("riscv64", "linux"))


async def test_a_client_that_has_something_else(bench):
    with pytest.raises(NotFound):
        await bench.describe(digest_of(b"none"))
    bench.content.blobs[digest_of(b"other")] = b"else"
    with pytest.raises(InvalidParameter, match="another content"):
        await bench.describe(digest_of(b"other"))
    for size in (1, 1000):
        manifest = bench.content.add(bench.document(size))
        with pytest.raises(InvalidParameter, match=f"does not have {size} bytes"):
            await bench.describe(manifest)
    assert bench.images.known == {}


async def test_without_a_client(bench):
    bench.watcher.session = None
    with pytest.raises(InvalidParameter, match="belongs to a client"):
        await bench.describe(bench.manifest)


def test_names():
    digest = digest_of(b"")
    assert named(f"//store:v1@{digest}") == Layout(digest, "store")
    assert layout_of(Source(f"oci-layout://name:x@{digest}")) == Layout(digest, "name")
    source = Source(f"oci-layout://name@{digest}", {"oci.store": "s", "oci.session": "id"})
    assert layout_of(source) == Layout(digest, "s", "id")
    with pytest.raises(InvalidParameter, match="has no digest"):
        named("//store:v1")
    with pytest.raises(InvalidParameter):
        named("//store@sha256:xyz")
