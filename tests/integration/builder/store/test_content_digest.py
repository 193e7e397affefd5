"""Digests of files change with what a copy of them would bring, and with nothing else."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from husk.builder.store.file_actions import Selection
from husk.builder.store.sync_table import Brief, SyncTable, content_hash, look_digest, pack_brief, write_table
from husk.builder.store.trees import Trees
from husk.errors import NotFound
from husk.storage.workers.handle import Worker
from tests.support.layers import Store
from tests.support.trees import Forest


@pytest.fixture
def forest(store: Store, tmp_path: Path) -> Forest:
    return Forest(store, tmp_path / "shown")


def fill(root: Path) -> None:
    (root / "d/e").mkdir(parents=True)
    (root / "d/e/file").write_text("text")
    (root / "d/note.txt").write_text("note")
    (root / "link").symlink_to("/d/e")
    os.mkfifo(root / "d/fifo")
    os.mknod(root / "d/device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    os.setxattr(root / "d/note.txt", "user.x", b"1")


def relink(root: Path) -> None:
    (root / "link").unlink()
    (root / "link").symlink_to("/d")


def renumber(root: Path) -> None:
    (root / "d/device").unlink()
    os.mknod(root / "d/device", stat.S_IFCHR | 0o600, os.makedev(1, 5))


def refill(root: Path) -> None:
    (root / "d/fifo").unlink()
    (root / "d/fifo").touch()


CHANGES: dict[str, Callable[[Path], object]] = {
    "content": lambda root: (root / "d/e/file").write_text("TEXT"),
    "name": lambda root: (root / "d/e/file").rename(root / "d/e/other"),
    "mode": lambda root: (root / "d/e").chmod(0o700),
    "owner": lambda root: os.chown(root / "d/note.txt", 1, 0),
    "target": relink,
    "attribute": lambda root: os.setxattr(root / "d/note.txt", "user.x", b"2"),
    "device": renumber,
    "kind": refill,
}


async def digest(forest: Forest, stack: str, path: str = "/", **words: object) -> str:
    return await forest.trees.digest(stack, [Selection(path=path, **words)])  # type: ignore[arg-type]


@pytest.mark.parametrize("change", CHANGES)
async def test_what_counts(forest: Forest, change: str):
    def changed(root: Path) -> None:
        fill(root)
        CHANGES[change](root)

    assert await digest(forest, await forest.plant(fill)) != await digest(forest, await forest.plant(changed))


async def test_times_and_how_the_files_came_do_not_count(forest: Forest):
    def touched(root: Path) -> None:
        fill(root)
        for path in root.rglob("*"):
            os.utime(path, ns=(0, 5), follow_symlinks=False)

    once = await forest.plant(fill)
    upper = await forest.plant(lambda root: (root / "extra").touch())
    gone = await forest.plant(lambda root: os.mknod(root / "extra", stat.S_IFCHR, 0), f"{once} {upper}")
    assert await digest(forest, once) == await digest(forest, await forest.plant(touched)) == await digest(forest, gone)


async def test_paths_through_links_and_missing_ones(forest: Forest):
    stack = await forest.plant(fill)
    assert await digest(forest, stack, "/link/file") == await digest(forest, stack, "/d/e/file")
    assert await digest(forest, stack, "/link", follow_links=True) == await digest(forest, stack, "/d/e")
    assert await digest(forest, stack, "/link") != await digest(forest, stack, "/d/e")
    with pytest.raises(NotFound, match=r'^"/missing": not found$'):
        await digest(forest, stack, "/missing")
    # No character of it is a wildcard.
    with pytest.raises(NotFound):
        await digest(forest, stack, "/missing", wildcards=True)
    assert await digest(forest, "", "/") == await digest(forest, "", "/")


async def test_wildcards_and_patterns_choose(forest: Forest):
    stack = await forest.plant(fill)

    def other(root: Path) -> None:
        fill(root)
        (root / "d/e/file").write_text("TEXT")

    changed = await forest.plant(other)
    for selection, same in (
        (Selection(path="/d/*.txt", wildcards=True), True),
        (Selection(path="/d/*", wildcards=True), False),
        (Selection(path="/l*", wildcards=True), True),
        (Selection(path="/l*", wildcards=True, follow_links=True), False),
        (Selection(exclude=["d/e"]), True),
        (Selection(exclude=["d/e", "!d/e/file"]), False),
        (Selection(include=["d/*.txt"]), True),
        (Selection(include=["d/*/file"]), False),
        (Selection(include=["d/*/file"], exclude=["**/e"]), True),
    ):
        one = await forest.trees.digest(stack, [selection])
        assert (one == await forest.trees.digest(changed, [selection])) is same, selection
    with pytest.raises(NotFound, match=r'"/d/no": not found'):
        await digest(forest, stack, include=["d/no"], required=["/d/no"])
    await digest(forest, stack, include=["d/e"], required=["/d/e"])


async def test_an_answer_is_remembered(forest: Forest, monkeypatch: pytest.MonkeyPatch):
    stack = await forest.plant(fill)
    both = [Selection(path="/d"), Selection(path="/link")]
    first = await forest.trees.digest(stack, both)
    monkeypatch.setattr(Worker, "start", None)
    assert await forest.trees.digest(stack, both) == first
    assert await forest.trees.digest(stack, both[::-1]) != first


async def test_what_a_table_knows_is_not_looked_at(forest: Forest, tmp_path: Path):
    stack = await forest.files(d__file="text")
    table = SyncTable()
    content = content_hash(b"something else").digest()
    for path, mode, hashed in ((b"d", stat.S_IFDIR | 0o755, b""), (b"d/file", stat.S_IFREG | 0o644, content)):
        table.add(b"", path, look_digest(mode, 0, 0, 0, hashed, []), pack_brief(Brief(mode, 0, 0, 0, 0)))
    with open(tmp_path / "table", "wb") as file:
        write_table(table, file)
    synced = Trees(forest.diffs, forest.store.nursery, {stack: tmp_path / "table"}.get)
    assert await synced.digest(stack, [Selection()]) == await digest(
        forest, await forest.files(d__file="something else")
    )
    # Of a stack with more in it nothing is known, and neither if the table has gone.
    more = await forest.files(stack, other="1")
    assert await synced.digest(more, [Selection()]) == await digest(forest, more)
    gone = Trees(forest.diffs, forest.store.nursery, lambda element: tmp_path / "missing")
    assert await gone.digest(stack, [Selection()]) == await digest(forest, stack)


async def test_names_that_are_not_utf8(forest: Forest):
    stack = await forest.plant(lambda root: (root / os.fsdecode(b"\xff\xfe")).touch())
    assert await digest(forest, stack, exclude=["x"]) != await digest(forest, stack)
