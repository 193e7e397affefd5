"""A step's changes in a blob: its digest and size are told, and another run gives the same bytes."""

import hashlib
import os
from pathlib import Path

from husk.builder.store.workers.diff_blob import write_blob


def blob_of(upper: Path, path: Path, latest: int | None = None) -> bytes:
    with open(path, "wb", buffering=0) as file:
        digest, size = write_blob(upper, file, latest)
    data = path.read_bytes()
    assert (digest, size) == ("sha256:" + hashlib.sha256(data).hexdigest(), len(data))
    return data


def test_the_same_tree_gives_the_same_bytes(tmp_path: Path):
    upper = tmp_path / "upper"
    upper.mkdir()
    for name in ("b", "a"):
        (upper / name).write_bytes(name.encode() * 3_000_000)
        os.utime(upper / name, ns=(0, 1_999_999_999))
    data = blob_of(upper, tmp_path / "one")
    (upper / "a").write_bytes(b"a" * 3_000_000)
    os.utime(upper / "a", ns=(0, 1_000_000_001))
    assert blob_of(upper, tmp_path / "two") == data
    assert blob_of(upper, tmp_path / "three", latest=0) != data
