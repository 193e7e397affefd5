"""Single actions on a directory. How they are carried out on stacks is tested with real workers."""

import errno
import os
from pathlib import Path

import pytest

from husk.builder.store.file_actions import Copy, FileAction, MakeDirectory, MakeFile, Owner, Remove, Symlink
from husk.builder.store.workers.file_job import Actions, NotThere, describe_fault
from husk.builder.store.workers.rooted_tree import ActionFailed, RootedTree
from husk.storage.workers.answers import Failed, Missing


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/a.txt").write_text("a")
    (tmp_path / "d/b.txt").write_text("b")
    return tmp_path


def do(root: Path, action: Copy | MakeFile | MakeDirectory | Symlink | Remove) -> list[str]:
    tree = RootedTree(str(root))
    Actions([tree]).carry_out(FileAction(action=action, input=0, second_input=0))
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def test_a_file_is_written_through_a_link_within_the_root(root: Path):
    (root / "link").symlink_to("/d/new")
    assert do(root, MakeFile(path="/link", mode=0o600, data=b"text")) == ["d", "d/a.txt", "d/b.txt", "d/new", "link"]
    assert (root / "d/new").read_text() == "text"


def test_a_file_that_is_there_keeps_its_mode(root: Path):
    (root / "d/a.txt").chmod(0o600)
    do(root, MakeFile(path="/d/a.txt", mode=0o777, data=b"x"))
    assert os.stat(root / "d/a.txt").st_mode & 0o777 == 0o600


def test_wildcards_remove_what_they_match(root: Path):
    assert do(root, Remove(path="/d/*.txt", wildcards=True)) == ["d"]
    assert do(root, Remove(path="/[", wildcards=True)) == ["d"]


def test_the_root_itself_cannot_be_removed(root: Path):
    with pytest.raises(ActionFailed, match="invalid empty path"):
        do(root, Remove(path="/"))


def test_what_is_not_there(root: Path):
    for action in (
        Remove(path="/x"),
        Remove(path="/x/*", wildcards=True),
        MakeDirectory(path="/x/y", mode=0o755),
        Copy(source="/x", destination="/y"),
        Copy(source="/d", destination="/x/y"),
    ):
        with pytest.raises(NotThere):
            do(root, action)


def test_a_copy_within_one_file_system(root: Path):
    found = do(root, Copy(source="/d/*.txt", destination="/e/", wildcards=True, make_parents=True))
    assert found == ["d", "d/a.txt", "d/b.txt", "e", "e/a.txt", "e/b.txt"]


def test_a_fault_is_told_with_the_name_as_people_write_it():
    assert describe_fault(OSError(errno.ENOSPC, "No space left", b"d/file")) == Failed("d/file: no space left")
    assert describe_fault(OSError(errno.ENOENT, "No such file", "file")) == Missing("file: no such file")
    assert describe_fault(OSError(errno.EIO, "Bad disk")) == Failed("bad disk")


@pytest.mark.parametrize("number", ["99999999999", "-5", "1_0", "9" * 5000, "x"])
def test_a_number_that_nobody_can_have_is_no_users(root: Path, number: str):
    (root / "etc").mkdir()
    (root / "etc/passwd").write_text(f"me:x:{number}:0\nme:x:0:{number}\nme:x:{os.getuid()}:{os.getgid()}\n")
    do(root, MakeFile(path="/new", mode=0o600, data=b"", user=Owner(name="me", input=0)))
    found = os.stat(root / "new")
    assert (found.st_uid, found.st_gid) == (os.getuid(), os.getgid())
