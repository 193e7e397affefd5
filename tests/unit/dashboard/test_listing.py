import io
import tarfile

import pytest

from husk.dashboard.listing import (
    FileEntry,
    OneFile,
    archived,
    clean,
    is_text,
    parents,
    told,
    upload_head,
    upload_tail,
)
from husk.errors import InvalidParameter


def archive(*entries: tuple[str, bytes | None]) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as made:
        for name, content in entries:
            entry = tarfile.TarInfo(name)
            if content is None:
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            else:
                entry.size = len(content)
            made.addfile(entry, io.BytesIO(content or b""))
    return whole.getvalue()


@pytest.mark.parametrize(("path", "found"), [("/", "/"), ("//a/../b/./c/", "/b/c"), ("/../../x", "/x")])
def test_paths_are_made_plain(path: str, found: str) -> None:
    assert clean(path) == found


@pytest.mark.parametrize("path", ["", "a/b", "/a\0b", "/" + "x" * 5000])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(InvalidParameter, match="not an absolute path"):
        clean(path)


def test_the_way_to_a_path() -> None:
    assert parents("/") == [("/", "/")]
    assert parents("/a/b") == [("/", "/"), ("a", "/a"), ("b", "/a/b")]


def test_what_stat_tells_is_read() -> None:
    output = (
        b"41ed 4096 1700000000 .\n41ed 4096 1700000000 sub dir\n81a4 12 1700000001 b\n"
        b"a1ff 3 1700000002 Alink\nnonsense\n"
    )
    assert told(output) == [
        FileEntry("sub dir", "directory", 4096, "drwxr-xr-x", 1700000000),
        FileEntry("Alink", "link", 3, "lrwxrwxrwx", 1700000002),
        FileEntry("b", "file", 12, "-rw-r--r--", 1700000001),
    ]
    assert told(b"zz 1 2 x\n41ed 1 2 a/b\n\xff") == []


def test_the_first_level_of_an_archive_is_listed() -> None:
    whole = archive(("etc", None), ("etc/sub", None), ("etc/sub/deep", b"x"), ("etc/hosts", b"hello"))
    assert [(each.name, each.kind, each.size) for each in archived(whole)] == [
        ("sub", "directory", 0),
        ("hosts", "file", 5),
    ]


def test_an_archive_that_is_cut_off_is_listed_as_far_as_it_goes() -> None:
    whole = archive(("etc", None), ("etc/one", b"x" * 2000), ("etc/two", b"y" * 2000))
    assert [each.name for each in archived(whole[:3000])] in (["one"], ["one", "two"])
    assert archived(b"") == [] and archived(b"nonsense" * 100) == []


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"hello", True),
        ("\u00e4".encode(), True),
        ("x\u00e4".encode()[:-1], True),
        (b"a\0b", False),
        (b"\xff" * 9, False),
        (b"ab\xff", False),
        (b"abc\xe4\xff", False),
        (b"ab\xe2\x82x", False),
    ],
)
def test_text_is_told_from_the_rest(content: bytes, text: bool) -> None:
    assert is_text(content) is text


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 100_000])
@pytest.mark.parametrize("step", [100, 1 << 20])
def test_the_content_of_one_file_is_taken_out_of_its_archive(size: int, step: int) -> None:
    content = bytes(number % 251 for number in range(size))
    whole = upload_head("a" * 200 + "\u00e4", size, 1) + content + upload_tail(size)
    file = OneFile()
    found = b"".join(file.feed(whole[start : start + step]) for start in range(0, len(whole), step))
    assert found == content and file.size == size and file.begun


def test_a_directory_is_no_file() -> None:
    with pytest.raises(InvalidParameter, match="no regular file"):
        OneFile().feed(archive(("etc", None)))
    with pytest.raises(InvalidParameter):
        OneFile().feed(b"nonsense" * 10_000)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\0b", "x" * 300])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidParameter, match="not the name of a file"):
        upload_head(name, 1, 1)
