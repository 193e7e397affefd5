"""Records of a build on their way out."""

from husk.builder.graph.op_digests import record_digest
from husk.builder.remote_cache import config
from husk.builder.remote_cache.chains import ChainLink, Chains
from husk.registry.manifest import Descriptor

BASE, MORE = Descriptor(digest="sha256:a", size=1), Descriptor(digest="sha256:b", size=2)


def test_records_with_their_inputs_and_layers():
    chains = Chains()
    base, files = chains.source("sha256:image"), chains.content("sha256:files")
    step = chains.operation("sha256:op", 0, [[ChainLink(base, "sha256:s")], [ChainLink(files)]])
    chains.result(step, [BASE, MORE], "2026-01-01T00:00:00Z")
    document = config.checked(chains.document())
    assert [layer.blob for layer in document.layers] == ["sha256:a", "sha256:b"]
    record = document.records[step]
    assert record.digest == record_digest("sha256:op", 0)
    assert [[(one.link, one.selector) for one in choices] for choices in record.inputs] == [
        [(0, "sha256:s")],
        [(1, "")],
    ]
    assert config.chain(document.layers, record.results[0].layer) == [0, 1]
    assert document.records[files].digest == record_digest("sha256:files", -1)


def test_the_same_twice_is_one():
    chains = Chains()
    base = chains.source("sha256:image")
    assert chains.source("sha256:image") == base
    one = chains.operation("sha256:op", 0, [[ChainLink(base), ChainLink(base)]])
    assert chains.operation("sha256:op", 0, [[ChainLink(base)]]) == one
    chains.result(one, [BASE], "")
    chains.result(chains.operation("sha256:other", 0, [[ChainLink(one)]]), [BASE, MORE], "")
    assert len(chains.document().layers) == 2
    chains.result(base, [], "")
    assert chains.document().records[base].results == []
