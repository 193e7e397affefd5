"""The document of a cache: what BuildKit wrote is read, and what leads nowhere is refused."""

import json

import pytest

from husk.builder.remote_cache import config
from husk.builder.remote_cache.config import CacheConfig, CacheInput, CacheLayer, CacheRecord, CacheResult
from husk.errors import InvalidParameter

WRITTEN = {
    "layers": [{"blob": "sha256:b"}, {"blob": "sha256:a", "parent": -1}],
    "records": [
        {"digest": "sha256:1", "inputs": [[{"link": 1, "selector": "sha256:s"}]], "layers": [{"layer": 0}]},
        {"digest": "sha256:2"},
    ],
}


def test_a_layer_without_a_parent_lies_on_the_first():
    read = config.read(
        json.dumps(WRITTEN | {"layers": [{"blob": "sha256:a", "parent": -1}, {"blob": "sha256:b"}]}).encode()
    )
    assert [layer.parent for layer in read.layers] == [-1, 0]
    assert config.chain(read.layers, 1) == [0, 1]
    assert config.order(read.records) == [1, 0]


def test_what_is_written_is_read_again():
    layers = [CacheLayer("sha256:a", -1), CacheLayer("sha256:b", 0)]
    records = [
        CacheRecord(digest="sha256:1"),
        CacheRecord([CacheResult(1)], digest="sha256:2", inputs=[[CacheInput("", 0)]]),
    ]
    document = CacheConfig(layers, records)
    assert config.read(config.write(document)) == document
    assert json.loads(config.write(document))["records"][1]["inputs"] == [[{"link": 0}]]


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[]",
        b"{",
        b"[" * 100_000,
        {"layers": [{"blob": "sha256:a", "parent": 5}]},
        {"layers": [{"blob": "sha256:a", "parent": 0}]},
        {"records": [{"digest": "x", "inputs": [[]]}]},
        {"records": [{"digest": "x", "inputs": [[{"link": 1}]]}]},
        {"records": [{"digest": "x", "inputs": [[{"link": 0}]]}]},
        {"records": [{"digest": "x", "layers": [{"layer": 0}]}]},
        {"records": [{"digest": "x", "chains": [{"layers": [3]}]}]},
    ],
)
def test_what_cannot_be_a_cache_is_refused(document):
    with pytest.raises(InvalidParameter, match="invalid cache"):
        config.read(document if isinstance(document, bytes) else json.dumps(document).encode())


def test_layers_in_a_circle_or_too_deep():
    for layers in (
        [{"blob": "a", "parent": 1}, {"blob": "b", "parent": 0}],
        [{"blob": "a", "parent": -1}, *({"blob": "b", "parent": number} for number in (2, 3, 1))],
        [{"blob": str(number), "parent": number - 1} for number in range(501)],
        [{"blob": str(number), "parent": number + 1} for number in range(600)] + [{"blob": "last", "parent": -1}],
    ):
        with pytest.raises(InvalidParameter, match="in a circle, or more than 500 deep"):
            config.read(json.dumps({"layers": layers}).encode())
    deep = [CacheLayer(str(number), number - 1) for number in range(500)]
    assert config.chain(config.checked(CacheConfig(deep)).layers, 499) == list(range(500))


@pytest.mark.parametrize(
    "records",
    [
        [{"digest": "x"}] * 1001,
        [{"digest": "x"}, {"digest": "y", "inputs": [[{"link": 0}] * 1001]}],
        [{"digest": "x", "layers": [{"layer": 0}] * 1001}],
        [{"digest": "x", "chains": [{"layers": [0] * 501}]}],
    ],
)
def test_more_than_any_builder_writes_is_refused(records):
    document = {"layers": [{"blob": "a", "parent": -1}], "records": records}
    with pytest.raises(InvalidParameter, match="more than"):
        config.read(json.dumps(document).encode())


def test_a_document_of_millions_of_values_is_not_read_at_all():
    document = '{"layers":[' + ",".join(["{}"] * 600_000) + "]}"
    for read in (config.read, config.read_records):
        with pytest.raises(InvalidParameter, match="more than 524288 values"):
            read(document.encode())


def test_a_long_chain_of_records_does_not_end_the_reader():
    records = [{"digest": "0"}, *({"digest": str(n), "inputs": [[{"link": n - 1}]]} for n in range(1, 5000))]
    assert len(config.read(json.dumps({"records": records[::1]}).encode()).records) == 5000
