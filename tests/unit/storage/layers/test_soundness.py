"""Sizes and digests, and what they tell about a layer."""

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.storage.layers.soundness import blob_fault, digest_of_file, tree_fault


@given(st.binary(max_size=5000))
def test_a_digest_is_that_of_the_content(tmp_path_factory, data: bytes):
    path = tmp_path_factory.mktemp("blob") / "blob"
    path.write_bytes(data)
    assert digest_of_file(path) == "sha256:" + hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    ("content", "fault"),
    [(b"whole", ""), (b"", "0 bytes instead of 5"), (b"wh\0le", "another digest"), (None, "cannot be read")],
)
def test_a_blob_has_its_size_and_its_digest(tmp_path: Path, content: bytes | None, fault: str) -> None:
    path = tmp_path / "blob"
    if content is not None:
        path.write_bytes(content)
    found = blob_fault(path, "sha256:" + hashlib.sha256(b"whole").hexdigest(), 5)
    assert fault in found and bool(fault) == bool(found)


def test_the_files_of_a_layer_have_their_size(tmp_path: Path) -> None:
    layer = tmp_path / "layer"
    assert tree_fault(layer, 0) == "its directory is missing"
    (layer / "etc").mkdir(parents=True)
    (layer / "etc/motd").write_text("hello")
    assert tree_fault(layer, 5) == ""
    (layer / "etc/motd").write_text("")
    assert tree_fault(layer, 5) == "its files have 0 bytes instead of 5"
