"""Copies into new directories go past overlayfs, straight to the disk, and look as if they had not."""

import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from husk.builder.store.file_actions import FileAction, MakeFile, Remove
from tests.support.layers import Store
from tests.support.trees import Forest, copy


@pytest.fixture
async def forest(store: Store, tmp_path: Path) -> AsyncIterator[Forest]:
    yield Forest(store, tmp_path / "shown")
    assert os.listdir(tmp_path / "layers/w") == []


async def test_names_of_one_file_in_old_and_new_directories_stay_one_file(forest: Forest):
    def plant(root: Path) -> None:
        for name in ("a", "there/b", "new/c", "new/deep/d", "z"):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if name == "a":
                path.write_text("one")
            else:
                os.link(root / "a", path)

    source, target = await forest.plant(plant), await forest.files(dst__there__old="old")
    step = FileAction(action=copy("/", "/dst"), input=0, second_input=1, output=0)
    [stack] = await forest.trees.apply([step], [target, source])
    with forest.shown(stack) as root:
        files = [root / "dst" / name for name in ("a", "there/b", "new/c", "new/deep/d", "z")]
        assert {file.read_text() for file in files} == {"one"}
        assert {(file.stat().st_ino, file.stat().st_nlink) for file in files} == {(files[0].stat().st_ino, 5)}
        assert (root / "dst/there/old").read_text() == "old"


async def test_a_new_directory_below_one_that_hands_its_group_on(forest: Forest):
    def plant(root: Path) -> None:
        (root / "top").mkdir()
        os.chown(root / "top", 0, 77)
        (root / "top").chmod(0o2775)

    source = await forest.files(sub__file="1", sub__deeper__file="2")
    step = FileAction(action=copy("/", "/top"), input=0, second_input=1, output=0)
    [stack] = await forest.trees.apply([step], [await forest.plant(plant), source])
    for name in ("sub", "sub/file", "sub/deeper", "sub/deeper/file"):
        status = forest.status(stack, f"top/{name}")
        assert (status.st_gid, status.st_mode & stat.S_ISGID) == (0, 0), name


async def test_a_later_action_sees_what_was_put_on_the_disk(forest: Forest):
    target, source = await forest.files(old="0"), await forest.files(d__a="1", d__b="2")
    steps = [
        FileAction(action=copy("/", "/new"), input=0, second_input=1),
        FileAction(action=Remove(path="/new/d/a"), input=2),
        FileAction(action=MakeFile(path="/new/d/b", mode=0o644, data=b"3"), input=3),
        FileAction(action=copy("/d", "/new/d"), input=4, second_input=1, output=0),
    ]
    [stack] = await forest.trees.apply(steps, [target, source])
    assert len(stack.split()) == 2
    assert forest.listing(stack) == {
        "old": "0", "new/": "", "new/d/": "", "new/d/a": "1", "new/d/b": "2",
    }  # fmt: skip


async def test_a_directory_that_comes_back_hides_what_it_was(forest: Forest):
    target, source = await forest.files(d__old="0", keep="1"), await forest.files(d__new="2")
    steps = [
        FileAction(action=Remove(path="/d"), input=0),
        FileAction(action=copy("/", "/"), input=2, second_input=1, output=0),
    ]
    [stack] = await forest.trees.apply(steps, [target, source])
    assert forest.listing(stack) == {"keep": "1", "d/": "", "d/new": "2"}


async def test_modes_with_special_bits_on_the_disk(forest: Forest):
    def plant(root: Path) -> None:
        (root / "d").mkdir(mode=0o755)
        for number, mode in enumerate((0o4755, 0o2711, 0o1600, 0o000)):
            (root / "d" / str(number)).write_text("x")
            (root / "d" / str(number)).chmod(mode)
        os.chown(root / "d/0", 5, 6)
        (root / "d/0").chmod(0o4755)
        os.setxattr(root / "d/1", "user.note", b"kept")

    step = FileAction(action=copy("/", "/new"), input=0, second_input=1, output=0)
    [stack] = await forest.trees.apply([step], [await forest.files(old="0"), await forest.plant(plant)])
    found = [forest.status(stack, f"new/d/{number}") for number in range(4)]
    assert [stat.S_IMODE(status.st_mode) for status in found] == [0o4755, 0o2711, 0o1600, 0o000]
    assert (found[0].st_uid, found[0].st_gid, found[1].st_uid) == (5, 6, 0)
    with forest.shown(stack) as root:
        assert os.getxattr(root / "new/d/1", "user.note") == b"kept"
