"""Records of a cache that fit an operation."""

from typing import Any

import pytest

from husk.builder.remote_cache.config import CacheConfig, CacheLayer, CacheRecord, ChainedResult
from husk.builder.remote_cache.export import ChainLink, Chains
from husk.builder.remote_cache.records import ImportedCache, InputMatch, RemoteLayer
from husk.registry.manifest import Descriptor

LAYERS = {name: RemoteLayer(Descriptor(digest=name, size=1), f"diff {name}") for name in ("a", "b", "c")}
NO_BLOBS: Any = None


@pytest.fixture
def cache():
    chains = Chains()
    base = chains.source("image")
    copied = chains.operation(
        "copy", 0, [[ChainLink(base)], [ChainLink(chains.content("files")), ChainLink(base, "selected")]]
    )
    chains.result(copied, [LAYERS["a"].descriptor, LAYERS["b"].descriptor], "2026-01-01T00:00:00Z")
    chains.operation("run", 0, [[ChainLink(copied, "whole")]])
    return ImportedCache(chains.document(), LAYERS, NO_BLOBS)


def test_from_the_source_to_the_last_step(cache):
    base = cache.sources(["other", "image"])
    assert cache.sources(["other"]) == frozenset()
    copied = cache.operations("copy", 0, [InputMatch(base), InputMatch(frozenset(), "", ["files"])])
    assert len(copied) == 1
    assert [layer.diff_id for layer in cache.result(copied)] == ["diff a", "diff b"]
    last = cache.operations("run", 0, [InputMatch(copied, "whole")])
    assert last
    assert cache.result(last) is None


@pytest.mark.parametrize(
    ("digest", "output", "second"),
    [
        ("move", 0, {"contents": ["files"]}),
        ("copy", 1, {"contents": ["files"]}),
        ("copy", 0, {"contents": ["other files"]}),
        ("copy", 0, {}),
    ],
)
def test_what_does_not_fit(cache, digest, output, second):
    inputs = [InputMatch(cache.sources(["image"])), InputMatch(frozenset(), **second)]
    assert not cache.operations(digest, output, inputs)
    assert not cache.operations(digest, output, inputs[:1])


def test_an_input_may_be_known_by_its_selector_instead(cache):
    base = cache.sources(["image"])
    assert cache.operations("copy", 0, [InputMatch(base), InputMatch(base, "selected")])
    assert not cache.operations("copy", 0, [InputMatch(base), InputMatch(base, "other")])


def test_the_newest_result_whose_layers_can_be_had():
    records = [
        CacheRecord(
            chains=[ChainedResult([0, 2], "2026-01-01T00:00:00Z"), ChainedResult([1], "2026-03-01T00:00:00Z")],
            digest="x",
        )
    ]
    layers = [CacheLayer("a", -1), CacheLayer("gone", -1), CacheLayer("c", -1)]
    cache = ImportedCache(CacheConfig(layers, records), LAYERS, NO_BLOBS)
    found = cache.result(frozenset({0}))
    assert found
    assert [layer.diff_id for layer in found] == ["diff a", "diff c"]
