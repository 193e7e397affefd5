"""Files that are archives which a build unpacks."""

import gzip
from pathlib import Path

import pytest

from husk.builder.store.workers.archive_files import is_archive
from husk.builder.store.workers.rooted_tree import RootedTree
from tests.support.layers import make_tar, member

TAR = make_tar(member("a", b"1"))


FILES = {
    "plain": TAR,
    "compressed": gzip.compress(TAR),
    "something else, compressed": gzip.compress(b"no archive"),
    "cut off": gzip.compress(TAR)[:20],
    "zeros": bytes(1024),
    "empty": b"",
    "a script": b"#!/bin/sh\n" * 100,
}


@pytest.mark.parametrize("kind", FILES)
def test_the_first_block_tells(tmp_path: Path, kind: str):
    (tmp_path / "file").write_bytes(FILES[kind])
    assert is_archive(RootedTree(str(tmp_path)), "file") is (kind in ("plain", "compressed"))


def test_only_regular_files_are_archives(tmp_path: Path):
    (tmp_path / "d").mkdir()
    tree = RootedTree(str(tmp_path))
    assert not is_archive(tree, "d") and not is_archive(tree, "missing")
