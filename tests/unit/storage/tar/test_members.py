"""Files on disk become entries of an archive, though somebody changes them meanwhile."""

import io
import os
import tarfile
from pathlib import Path

import pytest

from husk.storage.tar.members import TarWriter, tar_to
from tests.support.tars import entries, files_of


def packed(directory: Path, *names: str, latest: int | None = None, status: os.stat_result | None = None) -> bytes:
    out = io.BytesIO()
    with tar_to(out, latest=latest) as members:
        for name in names:
            path = directory / name
            members.add(name, os.fsencode(path), status or os.lstat(path))
    return out.getvalue()


def test_every_kind_of_file_is_told(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "dir").mkdir(mode=0o1777)
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")
    found = entries(packed(tmp_path, "file", "dir", "link", "pipe"))
    assert [member.type for member in found.values()] == [
        tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.FIFOTYPE,
    ]  # fmt: skip
    assert found["link"].linkname == "file"


def test_a_file_with_two_names_is_written_once(tmp_path: Path):
    (tmp_path / "one").write_bytes(b"x" * 1000)
    (tmp_path / "two").hardlink_to(tmp_path / "one")
    found = entries(packed(tmp_path, "one", "two"))
    assert (found["two"].type, found["two"].linkname, found["two"].size) == (tarfile.LNKTYPE, "one", 0)


def test_a_file_that_was_truncated_meanwhile_has_zeros_instead(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"x" * 1000)
    status = os.lstat(tmp_path / "file")
    os.truncate(tmp_path / "file", 600)
    assert files_of(packed(tmp_path, "file", status=status)) == {"file": b"x" * 600 + bytes(400)}


def test_what_has_gone_is_left_out(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"x")
    status = os.lstat(tmp_path / "file")
    (tmp_path / "file").unlink()
    assert entries(packed(tmp_path, "file", status=status)) == {}


def test_no_time_is_after_the_latest(tmp_path: Path):
    for name, time in (("early", 100), ("late", 10_000)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time, time))
    found = entries(packed(tmp_path, "early", "late", latest=5000))
    assert [member.mtime for member in found.values()] == [100, 5000]


def test_an_archive_that_fails_has_no_end_mark(tmp_path: Path):
    out = io.BytesIO()
    with pytest.raises(ZeroDivisionError), tar_to(out) as members:
        members.add_empty("mark")
        raise ZeroDivisionError
    assert len(out.getvalue()) == 512


def test_marks_and_directories(tmp_path: Path):
    out = io.BytesIO()
    members = TarWriter(out)
    members.add_empty("mark")
    members.add_directory("dir", os.stat(tmp_path))
    assert files_of(out.getvalue()) == {"mark": b""}
    assert len(out.getvalue()) == 2 * 512
