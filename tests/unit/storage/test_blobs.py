"""The blob store: digests as names, all or nothing."""

import asyncio
import hashlib
from pathlib import Path

import pytest

from husk.errors import DiskFault, InvalidParameter, NotFound
from husk.storage import blobs as module
from husk.storage.blobs import BlobStore, validate_digest
from tests.support.waiting import until

DATA = b"some content"
DIGEST = "sha256:" + hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore.open(tmp_path / "blobs")


async def test_what_is_put_is_found_under_its_digest(blobs: BlobStore):
    assert await blobs.put(DATA) == DIGEST
    assert blobs.has(DIGEST)
    assert blobs.size(DIGEST) == len(DATA)
    assert await blobs.read(DIGEST) == DATA
    assert blobs.path(DIGEST).name == DIGEST.removeprefix("sha256:")


async def test_putting_the_same_twice_is_the_same_blob(blobs: BlobStore):
    assert await blobs.put(DATA) == await blobs.put(DATA)
    assert blobs.all() == {DIGEST}


async def test_removing_twice_is_as_good_as_once(blobs: BlobStore):
    await blobs.put(DATA)
    await blobs.remove(DIGEST)
    await blobs.remove(DIGEST)
    assert not blobs.has(DIGEST)


async def test_a_missing_blob_is_not_found(blobs: BlobStore):
    with pytest.raises(NotFound, match=DIGEST):
        await blobs.read(DIGEST)
    with pytest.raises(NotFound, match=DIGEST):
        blobs.size(DIGEST)


@pytest.mark.parametrize(
    "digest",
    [
        "",
        "sha256:",
        "sha256:../../etc/passwd",
        "sha512:" + "0" * 64,
        DIGEST.upper(),
        DIGEST + "\n",
        DIGEST[:-1],
        DIGEST + "0",
    ],
)
def test_what_is_no_digest_never_becomes_a_path(blobs: BlobStore, digest: str):
    with pytest.raises(InvalidParameter):
        validate_digest(digest)
    with pytest.raises(InvalidParameter):
        blobs.path(digest)


async def test_opening_forgets_what_was_half_written_and_keeps_the_rest(blobs: BlobStore, tmp_path: Path):
    await blobs.put(DATA)
    half = blobs.temporary()
    half.write_bytes(b"half")
    again = BlobStore.open(tmp_path / "blobs")
    assert not half.exists()
    assert again.has(DIGEST)


async def test_sweeping_removes_what_nobody_keeps(blobs: BlobStore):
    other = await blobs.put(b"other")
    await blobs.put(DATA)
    assert await blobs.sweep({DIGEST}) == [other]
    assert blobs.all() == {DIGEST}


async def test_a_temporary_file_becomes_a_blob_by_adoption(blobs: BlobStore):
    temporary = blobs.temporary()
    temporary.write_bytes(DATA)
    blobs.adopt(temporary, DIGEST)
    assert await blobs.read(DIGEST) == DATA
    assert not temporary.exists()


async def test_what_is_synced_ahead_is_synced_all_the_same(blobs: BlobStore, monkeypatch: pytest.MonkeyPatch):
    names: list[Path] = []
    files: list[Path] = []

    def fail(path: Path) -> None:
        names.append(path)
        raise OSError(5, "Input/output error")

    digest = await blobs.put(DATA)
    monkeypatch.setattr(module, "sync_directory", fail)
    monkeypatch.setattr(module, "sync_file", files.append)
    blobs.settle_ahead()
    blobs.settle_ahead()
    await asyncio.to_thread(until, lambda: bool(names), "the names are synced")
    assert set(names) == {blobs.path(digest).parent} and files == []
    with pytest.raises(DiskFault):
        await blobs.settle()
    assert files == [blobs.path(digest)]
    blobs.close()
