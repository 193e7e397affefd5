"""A copy that is to be a layer is packed while it is made, to the very bytes that packing its files gives."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from husk.builder.store.diff_packing import pack
from husk.builder.store.file_actions import Copy, FileAction, Remove
from tests.support.layers import Store
from tests.support.trees import Forest, copy, deepen, do


@pytest.fixture
async def forest(store: Store, tmp_path: Path) -> AsyncIterator[Forest]:
    yield Forest(store, tmp_path / "shown")


def fill(root: Path) -> None:
    (root / "src/d/e").mkdir(parents=True)
    (root / "src/d/file").write_text("text")
    (root / "src/d/large").write_bytes(os.urandom((1 << 20) + 5))
    (root / "src/d/script").write_text("#!/bin/sh")
    (root / "src/d/script").chmod(0o4755)
    (root / "src/link").symlink_to("d")
    (root / "src/note").write_text("note")
    os.mkfifo(root / "src/pipe")
    os.chown(root / "src/note", 5, 6)
    os.setxattr(root / "src/note", "user.x", b"1")
    os.utime(root / "src/d/e", (5, 5))


async def told_and_packed(forest: Forest, action: Copy, target: str, source: str) -> tuple[set[str], str]:
    """The blobs that there are after the copy, and what packing its files gives."""
    [stack] = await forest.trees.apply(
        [FileAction(action=action, input=0, second_input=1, output=0)], [target, source], layered=True
    )
    told = forest.store.blobs.all()
    upper = Path(forest.diffs.lower(stack)[0])
    blob_file = forest.store.blobs.make_temporary()
    [packing] = await pack(forest.store.nursery, [(upper, blob_file)], "")
    blob_file.unlink()
    assert os.listdir(blob_file.parent) == []
    return told, packing.digest


@pytest.mark.parametrize("destination", ["/", "/new/", "/new/x", "/there/", "/there/deep/x", "/gone/"])
async def test_copies(forest: Forest, destination: str):
    target = await forest.files(there__note="old", there__d__old="old", there__deep__y="old", gone__d__file="old")
    target = await do(forest, Remove(path="/gone"), target)
    source = await forest.plant(fill)
    known: set[str] = set()
    for path in ("/src", "/src/d", "/src/d/file", "/src/d/large", "/src/note"):
        told, packed = await told_and_packed(forest, copy(path, destination), target, source)
        assert told - known == {packed}, path
        known = told


def fill_more(root: Path) -> None:
    """So much that a second process packs it."""
    fill(root)
    for number in range(300):
        (root / f"src/d/e/{number}").write_bytes(b"x" * number)


@pytest.mark.parametrize("destination", ["/new/", "/there/"])
async def test_many_files(forest: Forest, destination: str):
    target = await forest.files(there__note="old", there__d__old="old")
    told, packed = await told_and_packed(forest, copy("/src", destination), target, await forest.plant(fill_more))
    assert told == {packed}


async def test_a_directory_in_the_place_of_a_removed_one(forest: Forest):
    target = await forest.files(there__src__d__old="old")
    target = await do(forest, Remove(path="/there/src/d"), target)
    told, packed = await told_and_packed(forest, copy("/src", "/there/"), target, await forest.plant(fill_more))
    assert told == {packed}


async def test_what_is_not_simple_is_not_told(forest: Forest):
    def linked(root: Path) -> None:
        fill(root)
        os.link(root / "src/d/file", root / "src/same")

    told, _ = await told_and_packed(forest, copy("/src", "/"), "", await forest.plant(linked))
    assert told == set()


async def test_a_tree_of_2500_levels_is_left_to_those_who_pack(forest: Forest):
    told, _ = await told_and_packed(forest, copy("/", "/x/"), "", await forest.plant(deepen))
    assert told == set()
    await forest.diffs.remove(forest.diffs.all())
    await forest.store.emptied()


async def test_an_image_takes_the_blob_as_it_is(forest: Forest):
    action = FileAction(action=copy("/src", "/new"), input=0, second_input=1, output=0)
    [stack] = await forest.trees.apply([action], ["", await forest.plant(fill)], layered=True)
    told = forest.store.blobs.all()
    [layer] = await forest.diffs.layers(stack)
    assert {layer.diff_id} == told == forest.store.blobs.all()
    await forest.diffs.remove([stack])


async def test_a_diff_takes_its_blob_with_it(forest: Forest):
    action = FileAction(action=copy("/src", "/new"), input=0, second_input=1, output=0)
    [stack] = await forest.trees.apply([action], ["", await forest.plant(fill)], layered=True)
    await forest.diffs.remove([stack])
    assert forest.store.blobs.all() == set()
