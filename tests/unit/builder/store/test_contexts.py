"""A small archive fills a directory without a worker; everything else is left to the worker."""

import io
import os
import tarfile

import pytest

from husk.builder.store.contexts import fill_small


def archive(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for member, data in members:
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


def test_a_directory_is_filled_with_the_files_of_a_small_archive(tmp_path):
    one, other = tarfile.TarInfo("Dockerfile"), tarfile.TarInfo("./other")
    one.mode, one.mtime = 0o640, 7
    assert fill_small(tmp_path, archive((one, b"FROM x"), (other, b""))) == 6
    assert (tmp_path / "Dockerfile").read_bytes() == b"FROM x"
    status = (tmp_path / "Dockerfile").stat()
    assert (status.st_mode & 0o7777, status.st_uid, status.st_mtime) == (0o640, 0, 7)
    assert sorted(os.listdir(tmp_path)) == ["Dockerfile", "other"]
    assert fill_small(tmp_path, archive()) == 0


def _member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, link
    return member, b""


@pytest.mark.parametrize(
    "given",
    [
        archive(_member("link", tarfile.SYMTYPE, "/etc/passwd")),
        archive(_member("directory", tarfile.DIRTYPE)),
        archive(_member("directory/file")),
        archive(_member("../file")),
        archive(_member("twice"), _member("twice")),
        archive(*(_member(str(number)) for number in range(101))),
        archive(_member("no end"))[:512],
        b"no archive",
        b"",
    ],
)
def test_nothing_is_filled_with_what_a_worker_has_to_look_at(tmp_path, given):
    assert fill_small(tmp_path, given) is None
    assert os.listdir(tmp_path) == []


def test_a_small_archive_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "Dockerfile").mkdir()
    with pytest.raises(FileExistsError):
        fill_small(tmp_path, archive(_member("Dockerfile")))
