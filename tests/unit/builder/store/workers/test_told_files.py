"""Files that a sync has told of, and the tar that they were packed into."""

import fcntl
import hashlib
import os
import stat
from pathlib import Path

import pytest

from husk.builder.store.sync_table import NO_PLACE, Brief, Listed, SyncTable, pack_brief, write_table
from husk.builder.store.workers.told_files import ToldFiles, open_told

DIRECTORY, FILE = Brief(stat.S_IFDIR | 0o755, 0, 0, 0, 1), Brief(stat.S_IFREG | 0o644, 0, 0, 3, 2)
FILES = {b"a": FILE, b"d": DIRECTORY, b"d/e": DIRECTORY, b"d/e/f": FILE, b"d2": FILE}
TAR = b"a tar"
BLOB = hashlib.sha256(TAR).hexdigest()


@pytest.fixture
def table(tmp_path: Path) -> str:
    made = SyncTable()
    for path, brief in FILES.items():
        made.add(b"", path, bytes(32), pack_brief(brief))
    (tmp_path / BLOB).write_bytes(TAR)
    with (tmp_path / "table").open("wb") as file:
        write_table(made, file)
    return str(tmp_path / "table")


@pytest.fixture(autouse=True)
def boot(tmp_path: Path) -> Path:
    """The file that names this start of the host; it lies beside the table."""
    path = tmp_path / "boot"
    path.write_text("one\n")
    return path


def told_by(table: str, blobs: str) -> ToldFiles | None:
    return open_told(table, blobs, Path(table).with_name("boot"))


def test_what_is_below_a_directory(table: str):
    told = told_by(table, "")
    assert told is not None
    assert told.below("") == Listed(list(FILES), list(FILES.values()), [NO_PLACE] * 5)
    assert told.below("d") == Listed([b"e", b"e/f"], [DIRECTORY, FILE], [NO_PLACE] * 2)
    assert told.below("no") == Listed([], [], [])


def test_without_a_table(tmp_path: Path):
    assert open_told("", "") is None
    assert open_told(str(tmp_path / "missing"), "") is None


def remember(table: str, path: str, places: list[int]) -> None:
    told = told_by(table, str(Path(table).parent))
    assert told is not None
    told.below(path)
    told.remember(path, places, "a key", f"sha256:{BLOB}")


def test_a_tar_is_remembered_with_the_places_of_files(table: str):
    remember(table, "d", [10, 20])
    told = told_by(table, str(Path(table).parent))
    assert told is not None and (found := told.below("")) is not None
    assert found.places == [NO_PLACE, NO_PLACE, 10, 20, NO_PLACE]
    tar = told.tar("a key")
    assert tar is not None and tar[:] == TAR
    assert told.tar("another key") is None


def test_it_counts_until_the_host_is_started_again(table: str, boot: Path):
    remember(table, "", [0, 1, 2, 3, 4])
    boot.write_text("two\n")
    told = told_by(table, str(Path(table).parent))
    assert told is not None and told.tar("a key") is None
    boot.unlink()
    told = told_by(table, str(Path(table).parent))
    assert told is not None and told.tar("a key") is None


@pytest.mark.parametrize("blobs", ["", "missing"])
def test_a_tar_that_has_gone(table: str, tmp_path: Path, blobs: str):
    remember(table, "", [0, 1, 2, 3, 4])
    told = told_by(table, blobs and str(tmp_path / blobs))
    assert told is not None and told.tar("a key") is None


def test_an_empty_tar_is_none(table: str, tmp_path: Path):
    remember(table, "", [0, 1, 2, 3, 4])
    (tmp_path / BLOB).write_bytes(b"")
    told = told_by(table, str(tmp_path))
    assert told is not None and told.tar("a key") is None


def test_a_tar_that_cannot_be_read_is_none(table: str, tmp_path: Path):
    remember(table, "", [0, 1, 2, 3, 4])
    (tmp_path / BLOB).unlink()
    (tmp_path / BLOB).mkdir()
    told = told_by(table, str(tmp_path))
    assert told is not None and told.tar("a key") is None


@pytest.mark.parametrize("length", [0, 100, 600])
def test_a_table_that_was_cut_off_tells_nothing(table: str, tmp_path: Path, length: int):
    os.truncate(table, length)
    told = told_by(table, str(tmp_path))
    assert told is not None and told.tar("a key") is None and told.below("") is None


def test_nothing_is_written_while_somebody_else_reads(table: str):
    with open(table, "rb") as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        remember(table, "", [0, 1, 2, 3, 4])
    told = told_by(table, str(Path(table).parent))
    assert told is not None and told.tar("a key") is None


def test_nothing_is_remembered_where_the_start_of_the_host_is_not_known(table: str, boot: Path):
    boot.unlink()
    before = Path(table).read_bytes()
    remember(table, "", [0, 1, 2, 3, 4])
    assert Path(table).read_bytes() == before
