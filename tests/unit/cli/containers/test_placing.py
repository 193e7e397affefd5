"""Nothing of an archive comes to lie anywhere but at its place."""

import io
import os
import stat
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from husk.cli.containers.placing import Placing
from husk.errors import InvalidParameter

Entry = tuple[str, bytes, str | bytes]
DIR, FILE, LINK, HARD, PIPE, DEVICE = (
    tarfile.DIRTYPE, tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.BLKTYPE,
)  # fmt: skip


def archive(*entries: Entry) -> tarfile.TarFile:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as written:
        for name, kind, content in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode, entry.mtime = kind, 0o6777, 10**9
            if isinstance(content, bytes):
                entry.size = len(content)
                written.addfile(entry, io.BytesIO(content))
            else:
                entry.linkname = content
                written.addfile(entry)
    made.seek(0)
    return tarfile.open(fileobj=made)


def put(place: Path, *entries: Entry, owners: bool = False) -> None:
    with closing(Placing(str(place), owners)) as placing, archive(*entries) as found:
        for entry in found:
            placing.put(found, entry)
        placing.finish()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A directory to copy to, with a file beside the place that a copy would come to."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.bashrc").write_text("mine")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").write_text("mine")
    return tmp_path / "home"


def test_a_tree_becomes_the_place(home: Path) -> None:
    put(
        home / "new",
        ("d", DIR, ""),
        ("d/sub", DIR, ""),
        ("d/sub/f", FILE, b"one"),
        ("d/same", HARD, "d/sub/f"),
        ("d/l", LINK, "/etc"),
        ("d/p", PIPE, ""),
        ("d/no/dir/f", FILE, b""),
    )
    new = home / "new"
    assert (new / "sub/f").read_bytes() == b"one" and (new / "same").stat().st_ino == (new / "sub/f").stat().st_ino
    assert os.readlink(new / "l") == "/etc" and stat.S_ISFIFO((new / "p").stat().st_mode)
    for path in (new, new / "sub", new / "sub/f", new / "p"):
        assert (stat.S_IMODE(path.stat().st_mode), path.stat().st_mtime) == (0o755, 10**9), path
    assert (new / "sub/f").stat().st_uid == os.geteuid()


def test_what_is_in_the_root_of_a_container(home: Path) -> None:
    put(home / "new", ("/", DIR, ""), ("/etc", DIR, ""), ("/etc/f", FILE, b"x"))
    assert (home / "new/etc/f").read_bytes() == b"x"
    put(home / "new", ("./", DIR, ""), ("./g", FILE, b"y"))
    assert (home / "new/g").read_bytes() == b"y"


@pytest.mark.parametrize(
    "entries",
    [
        [("d/../.bashrc", FILE, b"theirs")],
        [("..", DIR, "")],
        [("e/.bashrc", FILE, b"theirs")],
        [("/.bashrc", FILE, b"theirs")],
        [("d/l", LINK, ".."), ("d/l/.bashrc", FILE, b"theirs")],
        [("d/l", LINK, "../../outside"), ("d/l/file", FILE, b"theirs")],
        [("d/l", LINK, "../../outside"), ("d/l/sub", DIR, "")],
        [("d/h", HARD, "d/../.bashrc"), ("d/h", FILE, b"theirs")],
        [("d/h", HARD, "../outside/file")],
        [("d/h", HARD, "/etc/passwd")],
        [("d/l", LINK, "../../outside"), ("d/h", HARD, "d/l/file")],
    ],
)
def test_nothing_leads_out_of_it(home: Path, entries: list[Entry]) -> None:
    with pytest.raises(InvalidParameter, match="not safe to unpack"):
        put(home / "new", ("d", DIR, ""), *entries)
    assert (home / ".bashrc").read_text() == "mine" and os.listdir(home.parent / "outside") == ["file"]
    assert (home.parent / "outside/file").read_text() == "mine"
    assert sorted(os.listdir(home)) == [".bashrc", "new"]


@pytest.mark.parametrize("way", ["a link", "another name"])
def test_what_an_earlier_copy_has_left_is_replaced_and_not_written_to(home: Path, way: str) -> None:
    (home / "new").mkdir()
    if way == "a link":
        (home / "new/f").symlink_to(home.parent / "outside/file")
    else:
        os.link(home.parent / "outside/file", home / "new/f")
    (home / "new/d").symlink_to(home.parent / "outside")
    put(home / "new", ("d", DIR, ""), ("d/f", FILE, b"theirs"), ("d/d", DIR, ""), ("d/d/file", FILE, b"theirs"))
    assert (home / "new/f").read_text() == "theirs" and not (home / "new/f").is_symlink()
    assert (home / "new/d/file").read_text() == "theirs" and not (home / "new/d").is_symlink()
    assert (home.parent / "outside/file").read_text() == "mine"


def test_a_device_is_this_hosts_own(home: Path) -> None:
    with pytest.raises(InvalidParameter, match="it is a device"):
        put(home / "new", ("sda", DEVICE, ""))
    assert not (home / "new").exists()


def test_a_directory_stays_where_a_file_would_come(home: Path) -> None:
    (home / "new/f").mkdir(parents=True)
    with pytest.raises(InvalidParameter, match="cannot write new/f: Is a directory"):
        put(home / "new", ("d", DIR, ""), ("d/f", FILE, b""))


@pytest.mark.skipif(os.geteuid() != 0, reason="owners are given by root")
def test_owners_by_number(home: Path) -> None:
    put(home / "new", ("d", DIR, ""), ("d/l", LINK, "x"), ("d/f", FILE, b""), owners=True)
    assert {(home / "new" / name).lstat().st_uid for name in ("", "l", "f")} == {0}
