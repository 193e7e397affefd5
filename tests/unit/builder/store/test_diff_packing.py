"""Changes of a small step are packed by the daemon, to the very bytes that a worker writes."""

import hashlib
import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from husk.builder.store.diff_packing import SmallDiffs, small_size
from husk.storage.blobs import BlobStore
from husk.storage.workers.diff import write_diff


@pytest.fixture
def blobs(tmp_path: Path) -> Iterator[BlobStore]:
    store = BlobStore.open(tmp_path / "blobs")
    yield store
    store.close()


@pytest.fixture
def small(blobs: BlobStore) -> Iterator[SmallDiffs]:
    small = SmallDiffs(blobs)
    yield small
    small.close()


@pytest.fixture
def upper(tmp_path: Path) -> Path:
    upper = tmp_path / "upper"
    (upper / "etc/deep/er").mkdir(parents=True)
    (upper / "etc/passwd").write_text("root")
    (upper / "etc/deep/er/é").write_bytes(b"12")
    os.link(upper / "etc/passwd", upper / "etc/twice")
    os.symlink("/etc/passwd", upper / "link")
    os.mkfifo(upper / "pipe")
    return upper


async def test_the_tar_is_the_one_that_a_worker_makes(small: SmallDiffs, blobs: BlobStore, upper: Path) -> None:
    before = os.getcwd()
    packed = await small.pack(upper)
    assert packed is not None
    size, blob = packed
    out = io.BytesIO()
    write_diff(upper, out)
    assert blobs.path(blob.digest).read_bytes() == out.getvalue()
    assert blob.digest == "sha256:" + hashlib.sha256(out.getvalue()).hexdigest() and blob.size == len(out.getvalue())
    assert size == 6, "a file with two names counts once"
    assert os.getcwd() == before


async def test_it_is_on_the_disk_when_the_blobs_are(small: SmallDiffs, blobs: BlobStore, upper: Path) -> None:
    packed = await small.pack(upper)
    assert packed is not None and blobs._unsynced == {packed[1].digest}
    await blobs.settle()
    assert not blobs._unsynced


async def test_much_is_left_to_a_worker(small: SmallDiffs, blobs: BlobStore, upper: Path) -> None:
    (upper / "large").write_bytes(bytes(1 << 16))
    assert await small.pack(upper) is None
    (upper / "large").unlink()
    for number in range(100):
        (upper / str(number)).touch()
    assert await small.pack(upper) is None
    assert blobs.all() == set() and os.listdir(blobs.temporary().parent) == []


async def test_what_cannot_be_read_is_left_to_a_worker(small: SmallDiffs, upper: Path) -> None:
    assert await small.pack(upper / "missing") is None
    assert await small.pack(upper / "etc/passwd") is None


def test_small_is_what_has_few_bytes_and_few_names(tmp_path: Path) -> None:
    assert small_size(tmp_path) == 0
    (tmp_path / "sparse").touch()
    os.truncate(tmp_path / "sparse", 1 << 40)
    assert small_size(tmp_path) is None
