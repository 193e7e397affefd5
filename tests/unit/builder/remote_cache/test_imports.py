"""Caches are read from where a client says that they are."""

import base64
import json
from typing import Any

import pytest

from husk.builder.remote_cache import config
from husk.builder.remote_cache.export import Chains
from husk.builder.remote_cache.imports import CREATED, UNCOMPRESSED, CacheImporter, read_manifest
from husk.builder.remote_cache.write import inline_records
from husk.builder.solver.asking import Asker
from husk.builder.solver.interfaces import CacheSource
from husk.errors import InvalidParameter, NotFound
from husk.registry.manifest import OCI_CONFIG, OCI_LAYER, OCI_MANIFEST, Descriptor
from tests.support.registry import digest_of, make_image
from tests.support.shelf import Shelf

DIFF = digest_of(b"diff")
LAYER = Descriptor(media_type=OCI_LAYER, digest=digest_of(b"layer"), size=5)
NO_BLOBS: Any = None


def document():
    chains = Chains()
    chains.result(chains.source("image"), [LAYER], "2026-01-01T00:00:00Z")
    return chains.document()


class Blobs(dict):
    """Bytes by digest, as somebody else has them."""

    def put(self, data, media_type="", **more):
        data = data if isinstance(data, bytes) else json.dumps(data).encode()
        self[digest_of(data)] = data
        return {"mediaType": media_type, "digest": digest_of(data), "size": len(data), **more}

    async def read_descriptor(self, descriptor):
        return self[descriptor.digest]

    async def size(self, digest):
        if digest not in self:
            raise NotFound(digest)
        return len(self[digest])

    async def read(self, digest, offset=0):
        yield self[digest]


@pytest.fixture
def blobs():
    return Blobs()


def layer(**annotations):
    described = {"mediaType": OCI_LAYER, "digest": LAYER.digest, "size": 5}
    return described | {"annotations": {UNCOMPRESSED: DIFF, CREATED: "2026-01-01T00:00:00Z"} | annotations}


@pytest.mark.parametrize("form", ["image", "index"])
async def test_a_cache_has_a_manifest_of_its_own(blobs, form):
    about = blobs.put(config.write(document()), config.MEDIA_TYPE)
    manifest = {"config": about, "layers": [layer()]} if form == "image" else {"manifests": [layer(), about]}
    (cache,) = await read_manifest(json.dumps(manifest).encode(), blobs.read_descriptor, NO_BLOBS)
    found = cache.result(cache.sources(["image"]))
    assert found
    assert [(one.diff_id, one.created) for one in found] == [(DIFF, 1767225600 * 10**9)]


async def test_a_layer_whose_content_nobody_names_is_left_out(blobs):
    about = blobs.put(config.write(document()), config.MEDIA_TYPE)
    bare = {"mediaType": OCI_LAYER, "digest": LAYER.digest, "size": 5}
    manifest = json.dumps({"config": about, "layers": [bare]}).encode()
    (cache,) = await read_manifest(manifest, blobs.read_descriptor, NO_BLOBS)
    assert cache.result(cache.sources(["image"])) is None


def image_with(blobs, cache, diff_ids=(DIFF,)):
    image = {"rootfs": {"diff_ids": list(diff_ids)}, "history": [{"created": "2026-01-01T00:00:00Z"}]}
    if cache is not None:
        image["moby.buildkit.cache.v0"] = cache
    about = blobs.put(image, OCI_CONFIG)
    return {"config": about, "layers": [{"mediaType": OCI_LAYER, "digest": LAYER.digest, "size": 5}]}


@pytest.mark.parametrize("several", [False, True])
async def test_a_cache_within_an_image(blobs, several):
    records = inline_records(document())
    assert records
    manifest = image_with(blobs, base64.b64encode(records).decode())
    if several:
        manifest = {"manifests": [blobs.put(manifest, OCI_MANIFEST)]}
    (cache,) = await read_manifest(json.dumps(manifest).encode(), blobs.read_descriptor, NO_BLOBS)
    found = cache.result(cache.sources(["image"]))
    assert found
    assert found[0].diff_id == DIFF


@pytest.mark.parametrize(
    ("cache", "diff_ids", "error"),
    [(None, [DIFF], NotFound), ("W10=", [DIFF, DIFF], NotFound), ("?", [DIFF], InvalidParameter)],
)
async def test_an_image_without_a_cache(blobs, cache, diff_ids, error):
    manifest = json.dumps(image_with(blobs, cache, diff_ids)).encode()
    with pytest.raises(error):
        await read_manifest(manifest, blobs.read_descriptor, NO_BLOBS)


class Session:
    id = "session"

    def __init__(self, store):
        self._store = store

    def content(self, name):
        assert name == "local:/cache"
        return self._store


class Log:
    def __init__(self):
        self.ended_with = []

    def started(self, vertex):
        pass

    def ended(self, vertex, *, cached=False, error="", cancelled=False, outputs=()):
        self.ended_with.append((vertex.name, error))


@pytest.fixture
def importer(tmp_path, state):
    registry: Any = None
    return CacheImporter(registry, Shelf(tmp_path, state).store)


async def test_a_directory_of_the_client(blobs, importer):
    about = blobs.put(config.write(document()), config.MEDIA_TYPE)
    manifest = blobs.put({"config": about, "layers": [layer()]})
    source = CacheSource("local", {"src": "/cache", "digest": manifest["digest"]})
    log: Any = Log()
    session: Any = Session(blobs)
    assert len(await importer.read([source], Asker(log, session))) == 1
    assert log.ended_with == [("importing cache manifest from /cache", "")]


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (CacheSource("local", {"src": "/cache"}), "explicit digest"),
        (CacheSource("local", {"digest": DIFF}), "requires src"),
        (CacheSource("local", {"src": "/cache", "digest": DIFF}), DIFF),
        (CacheSource("local", {"src": "/cache", "digest": "x"}), "digest"),
        (CacheSource("registry", {"ref": "NO"}), "invalid reference"),
        (CacheSource("gha", {}), "not implemented"),
    ],
)
async def test_one_that_cannot_be_read_is_told_and_left_out(blobs, importer, source, told):
    log: Any = Log()
    session: Any = Session(blobs)
    assert await importer.read([source], Asker(log, session)) == []
    assert told in log.ended_with[0][1]


async def test_an_image_that_is_here_is_asked_first(tmp_path, state):
    shelf = Shelf(tmp_path / "shelf", state)
    made = make_image([b"one layer"])
    await shelf.add(made, "team/app:1")
    asked: list[str] = []

    class Registry:
        async def manifest(self, reference, auth):
            asked.append(str(reference))
            raise NotFound("no such image")

    registry: Any = Registry()
    nobody: Any = None
    sources = [CacheSource("registry", {"ref": name}) for name in ("team/app:1", "team/other:1")]
    log: Any = Log()
    assert await CacheImporter(registry, shelf.store).read(sources, Asker(log, nobody)) == []
    assert asked == ["docker.io/team/app:1", "docker.io/team/other:1"], "neither has a cache in it"
