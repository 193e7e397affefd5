"""A layer's stream becomes a blob and files, or one answer that says whose fault it is that it does not.

The directory is entered without being made the root: that takes root's rights, and is for the integration tests.
"""

import contextlib
import hashlib
import os
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from husk.storage.workers import unpack as module
from husk.storage.workers.answers import Failed, Invalid, UnpackedLayer
from husk.storage.workers.jobs import UnpackJob
from husk.storage.workers.unpack import BlobIntake, describe, is_fault_of_host, unpack
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


DATA = bytes(range(256)) * 8000


@pytest.fixture
def blob(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path / "blob", os.O_RDWR | os.O_CREAT, 0o600)
    yield descriptor
    os.close(descriptor)


@pytest.fixture
def feed() -> Iterator[Callable[[bytes], int]]:
    """The reading end of a pipe that gets these bytes, in pieces."""
    opened: list[int] = []

    def make(data: bytes) -> int:
        reading, writing = os.pipe()
        opened.append(reading)

        def write() -> None:
            with contextlib.suppress(BrokenPipeError), os.fdopen(writing, "wb", buffering=0) as out:
                for at in range(0, len(data), 5000):
                    out.write(data[at : at + 5000])

        threading.Thread(target=write, daemon=True).start()
        return reading

    yield make
    for descriptor in opened:
        os.close(descriptor)


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, len(DATA)])
def test_all_that_comes_is_in_the_blob_and_hashed(blob: int, feed: Callable[[bytes], int], size: int) -> None:
    source = BlobIntake(feed(DATA[:size]), blob)
    assert source.head == DATA[: min(size, 512)]
    source.start()
    assert source.digest == "sha256:" + hashlib.sha256(DATA[:size]).hexdigest()
    assert (source.size, os.pread(blob, size + 1, 0)) == (size, DATA[:size])


def test_it_can_be_read_while_it_comes_and_is_hashed_once(blob: int, feed: Callable[[bytes], int]) -> None:
    source = BlobIntake(feed(DATA), blob)
    source.start()
    first, buffer = source.read(1000), memoryview(bytearray(3000))
    count = source.readinto(buffer)
    assert first + bytes(buffer[:count]) == DATA[: len(first) + count]
    assert source.digest == "sha256:" + hashlib.sha256(DATA).hexdigest()
    assert source.read(10) == b"" and source.readinto(buffer) == 0


def test_an_input_that_is_no_pipe_is_copied(blob: int, tmp_path: Path) -> None:
    (tmp_path / "input").write_bytes(DATA)
    with (tmp_path / "input").open("rb", buffering=0) as given:
        source = BlobIntake(given.fileno(), blob)
        source.start()
        assert source.digest == "sha256:" + hashlib.sha256(DATA).hexdigest()


def test_an_error_of_the_disk_is_the_readers(feed: Callable[[bytes], int], tmp_path: Path) -> None:
    descriptor = os.open("/dev/full", os.O_RDWR)
    try:
        source = BlobIntake(feed(DATA), descriptor)
        source.start()
        with pytest.raises(OSError, match="No space left"):
            source.drain()
    finally:
        os.close(descriptor)


def test_parts_are_copied_into_files_once_they_have_come(
    blob: int, feed: Callable[[bytes], int], tmp_path: Path
) -> None:
    source = BlobIntake(feed(DATA), blob)
    source.start()
    descriptor = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        copied = source.copy_to(descriptor, 700, 100_000)
        assert os.pread(descriptor, 200_000, 0) == DATA[700 : 700 + copied]
        assert source.copy_to(descriptor, len(DATA) + 5, 10) == 0, "behind the end there is nothing to wait for"
    finally:
        os.close(descriptor)
