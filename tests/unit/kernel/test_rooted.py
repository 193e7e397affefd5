"""Files that a container made its own way lead nobody out of its tree, and nobody to anything but a file."""

import ctypes
import errno
import os
import socket
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from husk.kernel import rooted
from husk.kernel.rooted import make_directories, make_file, make_file_where_it_leads, read_text, walk_path


def test_a_text_file_and_one_behind_a_link(tmp_path: Path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_bytes(b"root:x:0:0\n\xff")
    (tmp_path / "link").symlink_to("/etc/passwd")
    assert read_text(tmp_path, "/etc/passwd") == read_text(tmp_path, "/link") == "root:x:0:0\n\ufffd"
    assert read_text(tmp_path, "/link", 4) == "root"


def test_nothing_is_empty(tmp_path: Path):
    assert read_text(tmp_path, "/etc/passwd") == ""


@pytest.mark.parametrize("kind", ["directory", "device", "pipe", "socket"])
def test_what_is_no_file_is_not_opened(tmp_path: Path, kind: str):
    path = tmp_path / "passwd"
    if kind == "directory":
        path.mkdir()
    elif kind == "device":
        os.mknod(path, stat.S_IFCHR, os.makedev(1, 5))  # /dev/zero, of which the text would be a megabyte
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        socket.socket(socket.AF_UNIX).bind(str(path))
    writer = os.open(path, os.O_RDWR) if kind == "pipe" else os.open(os.devnull, os.O_WRONLY)
    try:
        assert read_text(tmp_path, "/passwd") == ""
    finally:
        os.close(writer)


def test_a_file_is_made_where_a_link_leads_inside_the_tree(tmp_path: Path):
    root = tmp_path / "root"
    (root / "real").mkdir(parents=True)
    (root / "link").symlink_to("/real")
    make_file(root, "/link/new")
    make_file(root, "/top/")
    assert (root / "real/new").read_bytes() == (root / "top").read_bytes() == b""


def test_what_has_the_name_of_a_file_to_be_made_is_not_opened(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")  # nobody reads it: who opens it to write waits for ever
    (tmp_path / "link").symlink_to("elsewhere")
    (tmp_path / "full").write_text("text")
    for name in ("pipe", "link", "full"):
        make_file(tmp_path, f"/{name}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full", "link", "pipe"]
    assert (tmp_path / "full").read_text() == "text"


def test_directories_are_made_where_links_lead(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "dangling").symlink_to("/not/there")
    (root / "out").symlink_to("../../escape")
    make_directories(root, "/dangling/x")
    make_directories(root, "/out/y")
    assert (root / "not/there/x").is_dir() and (root / "escape/y").is_dir()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["root"]


def test_directories_are_not_made_through_files_and_loops(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(NotADirectoryError):
        make_directories(tmp_path, "/file/x")
    with pytest.raises(OSError, match="symbolic links"):
        make_directories(tmp_path, "/loop/x")


def test_a_file_is_made_where_links_lead_that_lead_to_nothing_yet(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/resolv.conf").symlink_to("../run/a/resolv.conf")
    (tmp_path / "run").symlink_to("/../../var/run")
    make_file_where_it_leads(tmp_path, "/etc/resolv.conf")
    assert (tmp_path / "var/run/a/resolv.conf").read_bytes() == b""
    (tmp_path / "var/run/a/resolv.conf").write_text("kept")
    make_file_where_it_leads(tmp_path, "/etc/resolv.conf")
    assert (tmp_path / "var/run/a/resolv.conf").read_text() == "kept"
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="Too many levels"):
        make_file_where_it_leads(tmp_path, "/loop")


def test_directories_are_made_for_an_owner(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir(mode=0o700)
    make_directories(tmp_path, "/there/new/one", (os.getuid(), os.getgid()))
    made = (tmp_path / "there/new/one").stat()
    assert (made.st_uid, made.st_gid) == (os.getuid(), os.getgid())


def test_what_is_renamed_elsewhere_meanwhile_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    libc, answers = rooted._libc, iter([errno.EAGAIN] * 5)

    def restless(*arguments: object) -> int:
        if error := next(answers, 0):
            ctypes.set_errno(error)
            return -1
        return int(libc.syscall(*arguments))

    monkeypatch.setattr(rooted, "_libc", SimpleNamespace(syscall=restless))
    os.close(rooted.open_in_root(tmp_path, "/../file", os.O_PATH))
    answers = iter([errno.EAGAIN] * 1000)
    with pytest.raises(BlockingIOError):
        rooted.open_in_root(tmp_path, "/../file", os.O_PATH)
    answers = iter([errno.ENOENT, 0])
    with pytest.raises(FileNotFoundError):
        rooted.open_in_root(tmp_path, "/../file", os.O_PATH)


LINKS = {"/lib": "usr/lib", "/usr/lib/self": ".", "/up": "../../usr", "/abs": "/usr", "/a": "b", "/b": "a"}


def look(above: list[str], name: str, last: bool) -> str | None:
    return LINKS.get("/" + "/".join([*above, name]))


@pytest.mark.parametrize(
    ("path", "leads"),
    [
        ("", []),
        ("/", []),
        ("./usr//lib/.", ["usr", "lib"]),
        ("../../etc", ["etc"]),
        ("lib/x", ["usr", "lib", "x"]),
        ("lib/self/x", ["usr", "lib", "x"]),
        ("up/share/../bin", ["usr", "bin"]),
        ("abs/bin", ["usr", "bin"]),
        ("lib/../bin", ["usr", "bin"]),
        ("nowhere/..", []),
    ],
)
def test_where_a_path_leads(path: str, leads: list[str]) -> None:
    assert walk_path(path, look, 40) == leads


def test_links_that_lead_to_each_other() -> None:
    with pytest.raises(OSError, match="/a") as raised:
        walk_path("/a", look, 40)
    assert raised.value.errno == errno.ELOOP
    assert walk_path("lib/self", look, 2) == ["usr", "lib"], "as many as that are followed"
    with pytest.raises(OSError, match="lib/self"):
        walk_path("lib/self", look, 1)


def test_the_last_part_is_told() -> None:
    seen: list[tuple[str, bool]] = []

    def told(above: list[str], name: str, last: bool) -> str | None:
        seen.append((name, last))
        return None

    walk_path("a/b/./", told, 0)
    walk_path("a/..", told, 0)
    assert seen == [("a", False), ("b", True), ("a", False)]
