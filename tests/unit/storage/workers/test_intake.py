"""A layer's stream becomes a blob file while others read from it."""

import contextlib
import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from husk.storage.workers.intake import BlobIntake

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
