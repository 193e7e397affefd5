"""The files of a tree, with their digests."""

import hashlib
import os
from pathlib import Path

from husk.storage.workers.listing import listed


def test_all_that_are_no_directories_in_order(tmp_path: Path) -> None:
    (tmp_path / "d/empty").mkdir(parents=True)
    (tmp_path / "d/file").write_bytes(b"text")
    (tmp_path / "a").symlink_to("d/file")
    os.mkfifo(tmp_path / "z")
    root = os.open(tmp_path, os.O_RDONLY)
    try:
        digest = "sha256:" + hashlib.sha256(b"text").hexdigest()
        assert list(listed(root, "", digests=True)) == [("a", ""), ("d/file", digest), ("z", "")]
        assert list(listed(root, "", digests=False)) == [("a", ""), ("d/file", ""), ("z", "")]
    finally:
        os.close(root)
