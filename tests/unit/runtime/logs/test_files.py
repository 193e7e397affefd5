"""The files of a log: their order, their numbers, and what goes when there are too many."""

import gzip
import os
from pathlib import Path

import pytest

from husk.runtime.logs.files import LogFiles


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "container.log"
    path.write_bytes(b"1\n")
    return path


def rotate(path: Path, content: bytes) -> None:
    LogFiles(path).put_aside()
    path.write_bytes(content)


def texts(path: Path) -> list[bytes]:
    found = []
    for file in LogFiles(path).open_all():
        found.append(os.pread(file.plain(), 1000, 0))
        file.close()
    return found


def test_the_oldest_comes_first(path: Path) -> None:
    for n in range(2, 13):
        rotate(path, b"%d\n" % n)
    assert texts(path) == [b"%d\n" % n for n in range(1, 13)]
    assert LogFiles(path).number() == 12


def test_other_files_are_none_of_the_log(path: Path) -> None:
    for name in ("container.log.tmp", "container.log.1.new", "container.log.x", "other.log.1"):
        (path.parent / name).write_bytes(b"no")
    assert texts(path) == [b"1\n"]


@pytest.mark.parametrize("compress", [False, True])
def test_the_oldest_go_and_numbers_grow_on(path: Path, compress: bool) -> None:
    for n in range(2, 8):
        rotate(path, b"%d\n" % n)
        LogFiles(path).tidy(3, compress)
    assert texts(path) == [b"5\n", b"6\n", b"7\n"]
    suffix = ".gz" if compress else ""
    assert sorted(os.listdir(path.parent)) == ["container.log", f"container.log.5{suffix}", f"container.log.6{suffix}"]


def test_packing_that_was_cut_off(path: Path) -> None:
    rotate(path, b"2\n")
    (path.parent / "container.log.1.gz").write_bytes(gzip.compress(b"1\n"))
    (path.parent / "container.log.7.new").write_bytes(b"half")
    assert texts(path) == [b"1\n", b"2\n"]
    LogFiles(path).tidy(5, True)
    assert sorted(os.listdir(path.parent)) == ["container.log", "container.log.1.gz"]
    assert texts(path) == [b"1\n", b"2\n"]


def test_what_comes_after_a_file(path: Path) -> None:
    files = LogFiles(path)
    (first,) = files.open_all()
    assert files.after(first) is None, "it is being written"
    files.put_aside()
    assert files.after(first) is None, "its writer does not know yet"
    path.write_bytes(b"2\n")
    second = files.after(first)
    assert second is not None and os.pread(second.plain(), 10, 0) == b"2\n"
    for n in range(3, 9):
        rotate(path, b"%d\n" % n)
        files.tidy(2, True)
    later = files.after(first)
    assert later is not None and os.pread(later.plain(), 10, 0) == b"7\n", "what lies between is gone"
    last = files.after(later)
    assert last is not None and os.pread(last.plain(), 10, 0) == b"8\n"
    assert files.after(last) is None
    for file in (first, second, later, last):
        file.close()


def test_a_log_without_files(tmp_path: Path) -> None:
    assert texts(tmp_path / "container.log") == []
    assert texts(tmp_path / "gone" / "container.log") == []
