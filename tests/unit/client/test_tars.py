import io
import stat
import tarfile
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.client.tars import FirstLevel, one_file, only_file, place_of, tree
from husk.errors import InvalidParameter, Unavailable


def test_a_file_comes_back():
    assert only_file(one_file("in/data", b"text"), "/in/data") == b"text"
    assert only_file(one_file("in/data", "täxt", mode=0o600), "/in/data") == "täxt".encode()


def test_only_the_file_is_in_the_archive():
    """Directories on the way keep what they are: the engine makes those that are missing."""
    with tarfile.open(fileobj=io.BytesIO(one_file("a/b/c", b"x", mode=0o755, owner=(3, 4)))) as archive:
        assert [(entry.name, entry.mode, entry.uid, entry.gid) for entry in archive] == [("a/b/c", 0o755, 3, 4)]


@pytest.mark.parametrize("path", ["relative", "/", "/a/../b", ""])
def test_what_is_no_place_for_a_file(path):
    with pytest.raises(InvalidParameter, match="absolute path"):
        place_of(path)


def test_a_tree_under_another_name(tmp_path):
    (tmp_path / "file").write_bytes(b"x")
    with tarfile.open(fileobj=io.BytesIO(tree(tmp_path, "there"))) as archive:
        assert archive.getnames() == ["there", "there/file"]


def test_a_directory_is_no_file(tmp_path):
    with pytest.raises(InvalidParameter, match="not a regular file"):
        only_file(tree(tmp_path, "there"), "/there")


def archived(format: int) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=format) as archive:
        for name, kind, content in (
            (".", tarfile.DIRTYPE, b""),
            ("./sub", tarfile.DIRTYPE, b""),
            ("./sub/deep", tarfile.REGTYPE, b"x" * 3000),
            ("./" + "long" * 60, tarfile.REGTYPE, b"y" * 513),
            ("./täxt", tarfile.REGTYPE, b""),
            ("./link", tarfile.SYMTYPE, b""),
        ):
            entry = tarfile.TarInfo(name)
            entry.type, entry.size, entry.mode, entry.mtime = kind, len(content), 0o640, 7
            entry.linkname = "a" * 200 if kind == tarfile.SYMTYPE else ""
            archive.addfile(entry, io.BytesIO(content))
    return whole.getvalue()


@pytest.mark.parametrize("step", [1, 511, 512, 1 << 20])
@pytest.mark.parametrize("format", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_a_list_of_a_directory_out_of_its_archive(format, step):
    level, whole = FirstLevel(), archived(format)
    for at in range(0, len(whole), step):
        level.feed(whole[at : at + step])
    assert [(entry.name, entry.size) for entry in level.entries] == [
        ("sub", 0), ("long" * 60, 513), ("täxt", 0), ("link", 0),
    ]  # fmt: skip
    sub, long, _, link = level.entries
    assert (stat.S_ISDIR(sub.mode), stat.S_ISREG(long.mode), stat.S_ISLNK(link.mode)) == (True, True, True)
    assert (link.link, long.mtime, stat.S_IMODE(long.mode)) == ("a" * 200, 7, 0o640)


@pytest.mark.parametrize("rubbish", [b"x" * 512, archived(tarfile.PAX_FORMAT)[:156] + b"x" + bytes(355)])
def test_an_archive_that_is_none(rubbish):
    with pytest.raises(Unavailable, match="cannot be read"):
        FirstLevel().feed(rubbish)


def test_a_header_that_counts_wrongly():
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 20
    with pytest.raises(Unavailable, match="makes no sense"):
        FirstLevel().feed(header.tobuf() + b"1 path=x\n".ljust(512, b"\0"))
    header.size = 2 << 20
    with pytest.raises(Unavailable, match="too long a name"):
        FirstLevel().feed(header.tobuf())


@given(
    st.binary(max_size=2000) | st.binary(max_size=600).map(lambda data: archived(tarfile.PAX_FORMAT)[: 5 * 512] + data)
)
def test_any_bytes_are_an_archive_or_none(data):
    with suppress(Unavailable):
        FirstLevel().feed(data)


@pytest.mark.parametrize("said", [{"size": "-1"}, {"size": "many"}, {"mtime": "soon"}])
def test_a_field_that_is_no_number(said):
    entry = tarfile.TarInfo("x")
    entry.pax_headers = said
    with pytest.raises(Unavailable, match="cannot be read"):
        FirstLevel().feed(entry.tobuf(tarfile.PAX_FORMAT))


def test_times_of_any_year():
    entry = tarfile.TarInfo("x")
    entry.mtime = -1.5
    level = FirstLevel()
    level.feed(entry.tobuf(tarfile.PAX_FORMAT))
    assert level.entries[0].mtime == -1
