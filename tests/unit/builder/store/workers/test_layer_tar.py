"""The tar that is written while files are copied is the one that would be made of them afterwards.

What overlayfs adds is tested with real builds.
"""

import io
import os
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from husk.builder.store.workers.copy_look import CopyLook
from husk.builder.store.workers.copying import TreeCopier
from husk.builder.store.workers.diff_blob import write_blob
from husk.builder.store.workers.layer_tar import Heads, LayerTar, foresee, heads_of_tree
from husk.builder.store.workers.rooted_tree import RootedTree
from husk.storage.tar.members import TarWriter
from husk.storage.workers.parts import Blob


class Trees(NamedTuple):
    """The places that files are copied from and to, and the tar of what is copied."""

    source: Path
    target: Path
    tar: Callable[[io.FileIO], LayerTar]


@pytest.fixture(params=["by the same process", "by another process"])
def many(request: pytest.FixtureRequest) -> int:
    """The number of files that are many: there are few here."""
    return 1 if request.param == "by another process" else 1 << 30


@pytest.fixture
def trees(tmp_path: Path, many: int) -> Trees:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "d/e").mkdir(parents=True)
    (source / "d/file").write_text("text")
    (source / "d/empty").touch()
    (source / "d/middle").write_bytes(os.urandom(100_000))
    (source / "d/large").write_bytes(os.urandom((2 << 20) + 7))
    (source / "d/link").symlink_to("file")
    (source / ("long " * 40)).write_text("a name that needs more than a plain header")
    (source / "d/\u00e4").write_text("a name that is not ASCII")
    os.mkfifo(source / "d/pipe")
    os.utime(source / "d/file", ns=(0, 1_700_000_000_999_999_999))
    os.utime(source / "d/e", (1, 1))
    target.mkdir()
    return Trees(source, target, partial(LayerTar, many_files=many, many_bytes=1 << 40))


def copied(trees: Trees, source: str = "", target: str = "", mode: int | None = None) -> tuple[Blob | None, Blob]:
    """Return what was written while copying, and what is written afterwards."""
    here, there, tar_of = trees
    tree = RootedTree(str(there), str(there))
    above = target.rpartition("/")[0]
    tree.make_directories(above, 0o755, None, None)
    blob_file = there.parent / "blob"
    with blob_file.open("w+b", buffering=0) as file:
        tar = tar_of(file)
        tar.begin(tree.on_disk)
        look = CopyLook((os.getuid(), os.getgid()), mode)
        TreeCopier(RootedTree(str(here)), tree, look, tar=tar).copy(source, target)
        told = tar.finish()
    with (there.parent / "afterwards").open("w+b", buffering=0) as file:
        after = Blob(*write_blob(there, file, None))
    if told is not None:
        assert blob_file.read_bytes() == (there.parent / "afterwards").read_bytes()
    else:
        assert blob_file.stat().st_size == 0
    return told, after


@pytest.mark.parametrize("target", ["", "new", "a/b/new"])
@pytest.mark.parametrize("mode", [None, 0o750])
def test_a_tree(trees: Trees, target: str, mode: int | None):
    told, after = copied(trees, "", target, mode)
    assert told == after


@pytest.mark.parametrize("name", ["file", "empty", "middle", "large", "link", "pipe"])
@pytest.mark.parametrize("target", ["x", "a/b/x"])
def test_a_single_thing(trees: Trees, name: str, target: str):
    told, after = copied(trees, f"d/{name}", target)
    assert told == after


def test_a_directory_that_is_there_keeps_its_look(trees: Trees):
    (trees[1] / "d").mkdir(mode=0o700)
    told, after = copied(trees, "", "d")
    assert told == after


def _link(source: Path) -> None:
    os.link(source / "d/file", source / "d/e/same")


def _attribute(source: Path) -> None:
    os.setxattr(source / "d/e", "user.of", b"a directory")


def _socket(source: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.path.relpath(source / "d/socket"))


def _group(source: Path) -> None:
    (source / "d").chmod(0o2755)


@pytest.mark.parametrize("change", [_link, _attribute, _socket])
def test_what_is_not_simple_is_left_to_those_who_pack(trees: Trees, change: Callable[[Path], None]):
    try:
        change(trees[0])
    except OSError:
        pytest.skip("this file system has no attributes of users")
    assert copied(trees, "", "new")[0] is None


def test_a_file_with_attributes(trees: Trees):
    try:
        os.setxattr(trees[0] / "d/large", "user.of", b"a file")
    except OSError:
        pytest.skip("this file system has no attributes of users")
    told, after = copied(trees, "", "new")
    assert told == after


def test_a_directory_that_hands_on_its_group(trees: Trees):
    _group(trees[0])
    told, after = copied(trees, "", "new")
    assert told in (after, None)


def test_another_owner_and_symbolic_modes(trees: Trees):
    """A link has the mode of all links."""
    here, there, tar_of = trees
    tree = RootedTree(str(there), str(there))
    with (there.parent / "blob").open("w+b", buffering=0) as file:
        tar = tar_of(file)
        tar.begin(tree.on_disk)
        look = CopyLook((os.getuid(), os.getgid()), symbolic_mode="go-rwx")
        TreeCopier(RootedTree(str(here)), tree, look, tar=tar).copy("", "new")
        told = tar.finish()
    with (there.parent / "afterwards").open("w+b", buffering=0) as file:
        assert told == Blob(*write_blob(there, file, None))


def test_a_directory_that_does_not_become_what_was_said(trees: Trees):
    here, there, tar_of = trees
    tree = RootedTree(str(there), str(there))
    with (there.parent / "blob").open("w+b", buffering=0) as file:
        tar = tar_of(file)
        tar.begin(tree.on_disk)
        TreeCopier(RootedTree(str(here)), tree, CopyLook((os.getuid(), os.getgid())), tar=tar).copy("", "a")
        (there / "a").chmod(0o711)
        assert tar.finish() is None


def test_what_is_foreseen_is_what_the_system_tells(tmp_path: Path):
    file = tmp_path / "file"
    file.touch()
    before = file.stat()
    for time in (0, 1, 10**9 - 1, 1_700_000_000_999_999_999, 1_699_999_999_999_999_872, -1, -1_500_000_000):
        os.utime(file, ns=(time, time))
        file.chmod(0o640)
        found = file.stat()
        told = foresee(before, mode=0o640, mtime=time)
        assert (told.st_mode, told.st_uid, int(told.st_mtime)) == (found.st_mode, found.st_uid, int(found.st_mtime))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    files = tmp_path / "files"
    (files / "d").mkdir(parents=True)
    (files / "d/small").write_text("text")
    (files / "d/large").write_bytes(os.urandom(300_000))
    (files / "link").symlink_to("d")
    os.mkfifo(files / "pipe")
    (files / ("long " * 40)).write_text("a name that needs more than a plain header")
    return files


def heads(files: Path, path: str = "app") -> str:
    before = os.getcwd()
    source = os.open(files, os.O_RDONLY)
    try:
        return heads_of_tree(path, source, lambda status: status)
    finally:
        os.close(source)
        os.chdir(before)


def test_the_same(files: Path):
    assert heads(files) == heads(files) != ""
    assert heads(files) != heads(files, "other") != heads(files, "")


def test_contents_do_not_count(files: Path):
    before, status = heads(files), (files / "d/small").stat()
    (files / "d/small").write_text("TEXT")
    os.utime(files / "d/small", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert heads(files) == before


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"x")


@pytest.mark.parametrize(
    "change",
    [
        lambda files: (files / "new").touch(),
        lambda files: (files / "d/small").unlink(),
        lambda files: (files / "d/small").rename(files / "d/smaller"),
        lambda files: (files / "d/small").chmod(0o600),
        lambda files: os.utime(files / "d", (1, 1)),
        lambda files: append(files / "d/large"),
    ],
)
def test_another_tree(files: Path, change: Callable[[Path], object]):
    before = heads(files)
    change(files)
    assert heads(files) not in (before, "")


@pytest.mark.parametrize(
    "change",
    [
        lambda files: os.link(files / "d/large", files / "z"),
        lambda files: os.setxattr(files / "d/large", "user.x", b"1"),
        lambda files: os.setxattr(files / "d", "user.x", b"1"),
    ],
)
def test_what_is_not_simple(files: Path, change: Callable[[Path], object]):
    change(files)
    assert heads(files) == ""


def test_headers_are_passed_on(files: Path):
    out = io.BytesIO()
    passing, alone = Heads(out), Heads()
    for one in (passing, alone):
        TarWriter(one).add_directory("app", files.stat())
    assert passing.digest() == alone.digest()
    assert len(out.getvalue()) == 512
