"""Data of files in others: all of it, and no more of the disk than before."""

import os
from pathlib import Path

import pytest

from husk.builder.store.workers.file_data import copy_data


def test_holes_stay_holes(tmp_path: Path):
    with open(tmp_path / "one", "wb") as file:
        file.write(b"begin")
        file.truncate(30_000_000)
    with open(tmp_path / "one", "rb") as source, open(tmp_path / "two", "wb") as target:
        copy_data(source.fileno(), target.fileno(), os.fstat(source.fileno()))
    status = (tmp_path / "two").stat()
    assert status.st_size == 30_000_000 and status.st_blocks * 512 < 1_000_000
    assert (tmp_path / "two").read_bytes()[:6] == b"begin\0"


def test_data_that_the_kernel_does_not_copy_between_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*arguments: object) -> int:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "copy_file_range", refuse)
    (tmp_path / "one").write_bytes(b"x" * 3_000_000)
    with open(tmp_path / "one", "rb") as source, open(tmp_path / "two", "wb") as target:
        copy_data(source.fileno(), target.fileno(), os.fstat(source.fileno()))
    assert (tmp_path / "two").read_bytes() == b"x" * 3_000_000
