"""A layer's stream becomes a blob and files, or one answer that says whose fault it is that it does not.

The directory is entered without being made the root: that takes root's rights, and is for the integration tests.
"""

import hashlib
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from husk.storage.workers import unpack as module
from husk.storage.workers.answers import Failed, Invalid, UnpackedLayer
from husk.storage.workers.jobs import UnpackJob
from husk.storage.workers.unpack import describe, is_fault_of_host, unpack
from tests.support.registry import compress, digest_of
from tests.support.tars import file, special, tar

ME = os.getuid()
FILES = tar(
    special("d", tarfile.DIRTYPE, uid=ME), file("d/x", b"1" * 5000, uid=ME), file("big", bytes(3 << 20), uid=ME)
)


@pytest.fixture(autouse=True)
def unconfined(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "enter", os.chdir)
    mask = os.umask(0)
    yield
    os.umask(mask)


class Place:
    def __init__(self, directory: Path) -> None:
        self.tree, self.blob, self._input = directory / "tree", directory / "blob", directory / "input"
        self.tree.mkdir()
        self.blob.touch()

    def unpack(self, data: bytes, digest: str = "", limit: int = 0) -> object:
        self._input.write_bytes(data)
        descriptor = os.open(self._input, os.O_RDONLY)
        try:
            return unpack(descriptor, UnpackJob(str(self.tree), str(self.blob), digest, limit))
        finally:
            os.close(descriptor)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("compression", ["none", "gzip", "zstd"])
def test_a_layer_is_told_by_its_blob_and_by_its_archive(place: Place, compression: str) -> None:
    blob = compress(FILES, compression)  # type: ignore[arg-type]
    answer = place.unpack(blob, digest_of(blob))
    assert isinstance(answer, UnpackedLayer)
    assert (answer.blob, answer.blob_size, answer.diff_id) == (digest_of(blob), len(blob), digest_of(FILES))
    assert answer.size == 5000 + (3 << 20) and place.blob.read_bytes() == blob
    assert (place.tree / "d/x").read_bytes() == b"1" * 5000
    assert hashlib.sha256((place.tree / "big").read_bytes()).digest() == hashlib.sha256(bytes(3 << 20)).digest()


def test_a_blob_that_is_another_is_refused_whatever_is_in_it(place: Place) -> None:
    wanted = digest_of(b"another")
    says = Invalid(f"filesystem layer verification failed for digest {wanted}")
    assert place.unpack(FILES, wanted) == says
    assert place.unpack(b"no archive" * 1000, wanted) == says
    assert place.unpack(compress(FILES, "gzip")[:-30], wanted) == says


@pytest.mark.parametrize(
    "blob",
    [b"no archive" * 1000, FILES[:2000], FILES[: 2 << 20], compress(FILES, "gzip")[:-30], compress(FILES, "zstd")[:-5],
     tar(file("../x", b"1", uid=ME))],
)  # fmt: skip
def test_a_damaged_layer_is_not_the_hosts_fault(place: Place, blob: bytes) -> None:
    assert isinstance(place.unpack(blob), Invalid)
    assert isinstance(place.unpack(blob, digest_of(blob)), Invalid)
    assert not (place.tree.parent / "x").exists()


def test_a_bomb_ends_at_the_limit(place: Place) -> None:
    bomb = compress(tar(file("zeros", bytes(20 << 20), uid=ME)), "gzip")
    answer = place.unpack(bomb, limit=1 << 20)
    assert isinstance(answer, Invalid) and "larger than 1048576 bytes when unpacked" in answer.message
    assert isinstance(place.unpack(bomb, limit=30 << 20), UnpackedLayer)


def test_what_the_host_cannot_do_is_its_fault(place: Place, tmp_path: Path) -> None:
    (tmp_path / "blob").unlink()
    assert isinstance(place.unpack(FILES), Failed)


def test_whose_fault_is_what() -> None:
    assert is_fault_of_host(OSError(28, "No space left")) and not is_fault_of_host(OSError("bad gzip"))
    assert describe(EOFError()) == Invalid("unexpected EOF")
    assert describe(OSError("bad data")) == Invalid("damaged layer: bad data")
    assert isinstance(describe(KeyError("x")), Failed)
