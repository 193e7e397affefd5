"""The document of a cache: what BuildKit wrote is read, and what leads nowhere is refused."""

import json

import pytest

from husk.engine.builder.remote import config
from husk.engine.builder.remote.config import CacheConfig, CacheInput, CacheLayer, CacheRecord, CacheResult
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


def test_layers_in_a_circle_end():
    with pytest.raises(InvalidParameter):
        config.chain([CacheLayer("a", 1), CacheLayer("b", 0)], 0)


def test_a_long_chain_of_records_does_not_end_the_reader():
    records = [{"digest": "0"}, *({"digest": str(n), "inputs": [[{"link": n - 1}]]} for n in range(1, 5000))]
    assert len(config.read(json.dumps({"records": records[::1]}).encode()).records) == 5000
