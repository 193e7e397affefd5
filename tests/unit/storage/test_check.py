"""Records of layers and their word about themselves, and digests computed anew."""

import hashlib
from pathlib import Path

import msgspec

from husk.storage.check import look_at_blobs, look_at_layers, read_layer_records
from husk.storage.layers.chain import chain_id
from husk.storage.layers.store import Layer


def digest(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def layer(name: str, parent: str = "", directory: str = "1") -> Layer:
    diff_id = digest(name)
    return Layer(chain_id(parent, diff_id), diff_id, parent, directory, 0, diff_id, 10, "tar")


def documents(*layers: Layer) -> dict[str, bytes]:
    return {layer.chain_id: msgspec.json.encode(layer) for layer in layers}


def test_a_chain_that_fits_together_is_right():
    base = layer("a")
    top = layer("b", base.chain_id)
    facts = read_layer_records(documents(base, top))
    assert set(facts.layers) == {base.chain_id, top.chain_id}
    assert not facts.wrong_records


def test_records_that_cannot_be_read_or_lie_about_their_chain_id_take_those_above_along():
    base, other = layer("a"), layer("x")
    middle = layer("b", base.chain_id)
    top = layer("c", middle.chain_id)
    held = documents(middle, top, other)
    held[base.chain_id] = b"{"
    held[digest("liar")] = msgspec.json.encode(other)
    facts = read_layer_records(held)
    assert set(facts.layers) == {other.chain_id}
    assert "cannot be read" in facts.wrong_records[base.chain_id]
    assert "has no record" in facts.wrong_records[middle.chain_id]
    assert "has no record" in facts.wrong_records[top.chain_id]
    assert "chain id" in facts.wrong_records[digest("liar")]


async def test_blobs_are_whole_damaged_or_none(tmp_path: Path):
    content = tmp_path / "sha256"
    content.mkdir()
    (tmp_path / "ingest").mkdir()
    whole, damaged = digest("whole"), digest("damaged")
    (content / whole[7:]).write_text("whole")
    (content / damaged[7:]).write_text("changed")
    (content / "notes").write_text("")
    (tmp_path / "ingest/3").write_text("half")
    facts = await look_at_blobs(tmp_path)
    assert facts.whole == {whole: 5}
    assert facts.damaged == {damaged: f"its content has the digest {digest('changed')}"}
    assert facts.strays == ["sha256/notes", "ingest/3"]


async def test_a_directory_belongs_to_one_layer(tmp_path: Path):
    (tmp_path / "layers/l/1").mkdir(parents=True)
    (tmp_path / "layers/l/9").mkdir()
    (tmp_path / "layers/trash/8").mkdir(parents=True)
    one, other, gone = layer("a"), layer("b"), layer("c", directory="2")
    facts = read_layer_records(documents(one, other, gone))
    await look_at_layers(tmp_path / "layers", tmp_path / "blobs", facts, {}, deep=False)
    assert facts.damaged.keys() == {max(one.chain_id, other.chain_id, key=list(facts.layers).index), gone.chain_id}
    assert facts.strays == ["l/9", "trash/8"]
