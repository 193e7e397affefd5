"""Words of a client about a cache that it wants, and the documents that come of them."""

import json

import pytest

from husk.builder.remote_cache import config, write
from husk.builder.remote_cache.export import Chains
from husk.builder.solver.interfaces import CacheSource
from husk.builder.store.compressions import ZSTD
from husk.errors import InvalidParameter, NotImplementedYet
from husk.registry.manifest import DOCKER_LIST, OCI_INDEX, OCI_MANIFEST, Descriptor

LAYER = Descriptor(digest="sha256:a", size=1)
ABOUT = Descriptor(media_type=config.MEDIA_TYPE, digest="sha256:c", size=2)


def read(kind="registry", **attributes):
    return write.read(CacheSource(kind, {name.replace("_", "-"): value for name, value in attributes.items()}))


def test_without_words():
    options = read()
    assert (options.whole, options.oci, options.as_image, options.ignore_error) == (False, True, True, False)


def test_with_words():
    options = read(mode="max", ignore_error="true", compression="zstd", force_compression="true")
    assert options.whole and options.ignore_error
    assert options.layers.compression.kind == ZSTD
    assert options.layers.force_compression
    assert not read("inline", mode="max").whole


@pytest.mark.parametrize(
    ("attributes", "media_type", "blobs"),
    [
        ({}, OCI_MANIFEST, "layers"),
        ({"image_manifest": "false"}, OCI_INDEX, "manifests"),
        ({"oci_mediatypes": "false"}, DOCKER_LIST, "manifests"),
    ],
)
def test_its_manifest(attributes, media_type, blobs):
    options = read(**attributes)
    manifest = json.loads(write.cache_manifest(ABOUT, [LAYER], options))
    assert manifest["mediaType"] == write.media_type_of(options) == media_type
    assert manifest[blobs][0]["digest"] == LAYER.digest
    about = manifest["config"] if blobs == "layers" else manifest["manifests"][-1]
    assert about["mediaType"] == config.MEDIA_TYPE


@pytest.mark.parametrize(
    ("kind", "attributes", "error"),
    [
        ("gha", {}, NotImplementedYet),
        ("registry", {"mode": "most"}, InvalidParameter),
        ("registry", {"ignore_error": "perhaps"}, InvalidParameter),
        ("registry", {"compression": "lzma"}, InvalidParameter),
        ("local", {"image_manifest": "true", "oci_mediatypes": "false"}, InvalidParameter),
    ],
)
def test_what_is_refused(kind, attributes, error):
    with pytest.raises(error):
        read(kind, **attributes)


def test_within_an_image_there_are_records_alone():
    chains = Chains()
    source = chains.source("image")
    assert write.inline_records(chains.document()) is None
    chains.result(source, [LAYER], "2026-01-01T00:00:00Z")
    records = write.inline_records(chains.document())
    assert records
    assert config.read_records(records)[0].results[0].layer == 0
