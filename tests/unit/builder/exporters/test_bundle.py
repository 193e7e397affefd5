"""Images as they go out, with doubles of what has their layers."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from husk.builder.exporters.bundle import Bundler, compression_of, with_inline_cache
from husk.builder.exporters.options import ExportOptions, read
from husk.builder.jobs.results import Predicate, Result
from husk.builder.store.compressions import Compression
from husk.builder.store.layer_packing import PackedLayer
from husk.engine.images.store import Pins
from husk.engine.model.image import RootFS
from husk.errors import InvalidParameter, SystemFault
from husk.registry.manifest import DOCKER_LAYER
from husk.registry.reference import digest_of
from husk.storage.layers.store import Layer
from tests.unit.builder.exporters.test_parts import config, platforms

PLAIN, GZIPPED, ZSTD = DOCKER_LAYER, f"{DOCKER_LAYER}.gzip", "application/vnd.oci.image.layer.v1.tar+zstd"


def layer(name, media_type):
    return Layer(name, digest_of(name.encode()), "", "d", 5, digest_of(b"blob" + name.encode()), 7, media_type)


class CountedPins(Pins):
    """Pins of which it is known how many there are."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def add(self, names):
        names = list(names)
        self.count += len(names)
        super().add(names)

    def drop(self, names):
        names = list(names)
        self.count -= len(names)
        super().drop(names)


class Store:
    def __init__(self):
        self.pins = CountedPins()
        self.blobs = self
        self.put_bodies: dict[str, bytes] = {}
        self.released: list[Any] = []

    async def put(self, body):
        assert digest_of(body) in self.pins
        self.put_bodies[digest_of(body)] = body

    async def release(self, chain, content):
        self.released.append((chain, content))


class Layers:
    """The packer of diffs, the finisher, and the packer of layers."""

    def __init__(self, *layers):
        self.made = list(layers)
        self.packer = self
        self.asked: list[Any] = []

    async def chain_ids(self, stack, clamp=None):
        return [one.chain_id for one in self.made]

    async def layers(self, stack, clamp=None):
        return self.made

    def finished(self, stack, document, layers, epoch=None):
        return structs.replace(document, rootfs=RootFS(diff_ids=[one.diff_id for one in layers]))

    async def pack(self, blob, compressed, wanted, hold):
        self.asked.append((blob, compressed, wanted))
        digest = digest_of(f"{blob} {wanted}".encode())
        hold(digest)
        return PackedLayer(digest, 9)


async def bundled(result, options=None, *layers, **more):
    store: Any = Store()
    parts: Any = Layers(*layers)
    told: list[str] = []
    async with Bundler(store, parts, parts).bundle(result, options or ExportOptions(), told.append, **more) as bundle:
        assert all(blob in store.pins for image in bundle.images for blob in image.packed)
    assert store.pins.count == 0
    assert len(store.released) == 1
    return SimpleNamespace(bundle=bundle, store=store, parts=parts, told=told)


def one(architecture="amd64", **more):
    metadata = {"refs.platforms": platforms(architecture), "containerimage.config": config(architecture)}
    return Result(metadata=metadata, **more)


def two():
    metadata = {"refs.platforms": platforms("amd64", "arm64")}
    metadata |= {f"containerimage.config/linux/{each}": config(each) for each in ("amd64", "arm64")}
    ref: Any = SimpleNamespace(stack=_stack)
    return Result(refs={"linux/amd64": ref, "linux/arm64": ref}, metadata=metadata)


async def _stack():
    return "diff:x"


async def test_plain_layers_are_compressed_and_others_stay_as_they_are():
    made = await bundled(one(), None, layer("a", GZIPPED), layer("b", PLAIN))
    (image,) = made.bundle.images
    body = json.loads(image.manifest.body)
    assert [each["mediaType"] for each in body["layers"]] == [GZIPPED, GZIPPED]
    assert body["layers"][0]["digest"] == layer("a", PLAIN).blob
    assert image.packed == [body["layers"][1]["digest"]]
    assert made.bundle.index is None and made.bundle.root is image.manifest
    assert set(made.store.put_bodies) == {image.manifest.descriptor.digest, image.config.descriptor.digest}
    assert made.told == ["exporting layers", f"exporting manifest {image.manifest.descriptor.digest}"]


@pytest.mark.parametrize(
    ("attributes", "now", "wanted"),
    [
        ({}, PLAIN, Compression("gzip")),
        ({"compression": "zstd", "force-compression": "1"}, GZIPPED, Compression("zstd")),
        ({"compression": "zstd"}, GZIPPED, None),
        ({"compression": "uncompressed"}, PLAIN, None),
        ({"compression": "uncompressed", "force-compression": "1"}, GZIPPED, Compression("uncompressed")),
        ({"oci-mediatypes": "false"}, ZSTD, Compression("gzip")),
    ],
)
async def test_compression(attributes, now, wanted):
    made = await bundled(one(), read(attributes, {}), layer("a", now))
    assert [asked for _, _, asked in made.parts.asked] == ([wanted] if wanted else [])


async def test_several_platforms_are_an_index_in_the_format_of_oci():
    made = await bundled(two(), read({"annotation-index.a": "b"}, {}), layer("a", PLAIN))
    index = json.loads(made.bundle.root.body)
    assert index["mediaType"].endswith("oci.image.index.v1+json")
    assert [each["platform"]["architecture"] for each in index["manifests"]] == ["amd64", "arm64"]
    assert index["annotations"] == {"a": "b"}
    assert made.bundle.manifests[-1] is made.bundle.index
    assert len(made.bundle.layers) == 1


async def test_statements_go_into_an_index_behind_the_images():
    said = {"linux/amd64": [Predicate(type="t", body=b"{}")]}
    made = await bundled(one(predicates=said), None, layer("a", PLAIN))
    index = json.loads(made.bundle.root.body)
    assert [each["platform"]["os"] for each in index["manifests"]] == ["linux", "unknown"]
    assert len(made.bundle.small_blobs) == 3


async def test_a_cache_in_the_configuration():
    async def cache(id, layers):
        return f"{id} {len(layers)}".encode()

    made = await bundled(one(inline_cache=cache), None, layer("a", PLAIN))
    assert json.loads(made.bundle.images[0].config.body)["moby.buildkit.cache.v0"] == "bGludXgvYW1kNjQgMQ=="
    assert with_inline_cache(b"{}", b"x") == b'{"moby.buildkit.cache.v0":"eA=="}'


@pytest.mark.parametrize(
    ("attributes", "result", "complaint"),
    [
        ({"annotation-index.a": "b"}, one(), "index annotations not supported"),
        ({"annotation-manifest[linux/s390x].a": "b"}, two(), "no platform linux/s390x"),
        ({"oci-mediatypes": "0"}, one(predicates={"linux/amd64": [Predicate(type="t", body=b"")]}), "attestations"),
    ],
)
async def test_what_makes_no_sense(attributes, result, complaint):
    with pytest.raises(InvalidParameter, match=complaint):
        await bundled(result, read(attributes, {}))


async def test_a_layer_that_cannot_be_packed_leaves_nothing_held():
    store: Any = Store()
    parts: Any = Layers(layer("a", PLAIN), layer("b", PLAIN))
    going = asyncio.Event()

    async def pack(blob, compressed, wanted, hold):
        if blob == layer("a", PLAIN).blob:
            await going.wait()
            raise SystemFault("no space left")
        going.set()
        try:
            await asyncio.Event().wait()
        finally:
            hold("sha256:late")

    parts.pack = pack
    with pytest.raises(SystemFault, match="no space left"):
        async with Bundler(store, parts, parts).bundle(one(), ExportOptions(), lambda told: None):
            pass
    assert store.pins.count == 0


def test_compressions_by_media_type():
    assert [compression_of(each) for each in (PLAIN, GZIPPED, ZSTD)] == ["uncompressed", "gzip", "zstd"]
