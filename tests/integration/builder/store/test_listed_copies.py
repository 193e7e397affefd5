"""Copies of a client's directory by what its sync has told: the same files and the same tar as by looking at them."""

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from husk.builder.store.diff_packing import pack
from husk.builder.store.file_actions import Copy, FileAction
from husk.builder.store.sync.exchange import exchange
from husk.builder.store.sync.mirrors import Mirrors
from husk.builder.store.sync_table import NO_PLACE, read_listed, read_packed
from husk.builder.store.trees import Trees
from husk.builder.store.workers.jobs import SendJob
from tests.integration.builder.store.sync.test_workers import channel
from tests.support.layers import Store
from tests.support.trees import Forest, copy


class Contexts:
    """A client's directory, its mirror, and copies of that."""

    def __init__(self, store: Store, tmp_path: Path) -> None:
        self.forest = Forest(store, tmp_path / "shown")
        self.mirrors = Mirrors.open(tmp_path / "mirrors", store.diffs, store.nursery)
        self.trees = Trees(store.diffs, store.nursery, self.mirrors.table)
        self.context = tmp_path / "context"
        for number in range(300):
            path = self.context / f"src/{number // 50}/{number}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(os.urandom(number))
            os.utime(path, ns=(5, number * 10**9 + number))
        (self.context / "src/link").symlink_to("0/1")
        (self.context / "src/0/1").chmod(0o4755)
        os.chown(self.context / "src/0/2", 5, 6)
        (self.context / "src/1").chmod(0o2750)

    async def sync(self, take: bool = True) -> str:
        theirs, ours = channel()

        async def answer(element: str) -> bool:
            return take

        job = SendJob(root=str(self.context), prefix="", mtime=None)
        sent = exchange(self.forest.store.nursery, job, theirs)
        _, element = await asyncio.gather(sent, self.mirrors.sync("key", ours, answer))
        return element

    async def copied(self, source: str, action: Copy, target: str = "") -> tuple[str, str]:
        """The new stack, and the digest of its tar, which is that of packing its files."""
        step = FileAction(action=action, input=0, second_input=1, output=0)
        known = self.forest.store.blobs.all()
        [stack] = await self.trees.apply([step], [target, source], layered=True)
        [made] = self.forest.store.blobs.all() - known or {""}
        upper = Path(self.forest.diffs.lower(stack)[0])
        blob_file = self.forest.store.blobs.make_temporary()
        [packing] = await pack(self.forest.store.nursery, [(upper, blob_file)], "")
        blob_file.unlink()
        assert made in ("", packing.digest)
        return stack, packing.digest

    def places(self, element: str) -> list[int]:
        """Return the places of a mirror's files in the tar that its table names."""
        table = self.mirrors.table(element)
        assert table is not None
        with table.open("rb") as file:
            listed = read_listed(file)
            assert listed is not None
            return listed.places if read_packed(file) is not None else []

    def looks(self, top: Path) -> dict[str, object]:
        def look(path: Path) -> object:
            status = path.lstat()
            content: object = None
            if path.is_symlink():
                content = os.readlink(path)
            elif path.is_file():
                content = path.read_bytes()
            return stat.filemode(status.st_mode), status.st_uid, status.st_gid, status.st_mtime_ns, content

        return {str(path.relative_to(top)): look(path) for path in sorted(top.rglob("*"))}

    def made(self, stack: str) -> Path:
        return Path(self.forest.diffs.lower(stack)[0])


@pytest.fixture
async def contexts(store: Store, tmp_path: Path) -> AsyncIterator[Contexts]:
    yield Contexts(store, tmp_path)


@pytest.mark.parametrize(("path", "destination"), [("/", "/new/"), ("/", "/"), ("/src", "/a/b/"), ("/src", "/there/")])
async def test_the_first_copy_and_one_with_a_change(contexts: Contexts, path: str, destination: str):
    below = await contexts.forest.files(there__old="old", there__src="in the way" if path == "/src" else "")
    if path == "/":
        below = await contexts.forest.files(other="x")
    place, here = destination.strip("/"), contexts.context / path.strip("/")
    mirror = await contexts.sync()
    stack, first = await contexts.copied(mirror, copy(path, destination), below)
    assert contexts.looks(contexts.made(stack) / place).items() >= contexts.looks(here).items()
    (contexts.context / "src/3/170").write_bytes(b"changed")
    (contexts.context / "src/3/171").unlink()
    (contexts.context / "src/2/new").write_bytes(b"new")
    (contexts.context / "src/4/201").chmod(0o600)
    mirror = await contexts.sync()
    again, second = await contexts.copied(mirror, copy(path, destination), below)
    found = contexts.looks(contexts.made(again) / place)
    assert found.items() >= contexts.looks(here).items()
    assert "src/3/171" not in found and "3/171" not in found
    assert first != second
    assert contexts.looks(contexts.made(stack) / place) != found


async def test_unchanged_files_come_from_the_tar_of_the_copy_before(contexts: Contexts):
    mirror = await contexts.sync()
    stack, _ = await contexts.copied(mirror, copy("/", "/new/"))
    assert NO_PLACE not in contexts.places(mirror)
    expected = contexts.looks(contexts.context)
    (contexts.context / "src/0/7").write_bytes(b"changed")
    mirror = await contexts.sync()
    assert contexts.places(mirror).count(NO_PLACE) == 1
    # Nobody opens this one.
    os.truncate(contexts.made(mirror) / "src/0/9", 1)
    stack, _ = await contexts.copied(mirror, copy("/", "/new/"))
    found = contexts.looks(contexts.made(stack) / "new")
    assert found["src/0/9"] == expected["src/0/9"]
    assert found["src/0/7"] != expected["src/0/7"]
    assert NO_PLACE not in contexts.places(mirror)


async def test_a_tar_that_has_gone_or_is_of_another_place_is_not_needed(contexts: Contexts):
    mirror = await contexts.sync()
    stack, _ = await contexts.copied(mirror, copy("/", "/new/"))
    other, _ = await contexts.copied(mirror, copy("/", "/other/"))
    await contexts.forest.diffs.remove([stack, other])
    assert contexts.forest.store.blobs.all() == set()
    (contexts.context / "src/0/7").write_bytes(b"changed")
    stack, _ = await contexts.copied(await contexts.sync(), copy("/", "/other/"))
    assert contexts.looks(contexts.made(stack) / "other") == contexts.looks(contexts.context)


async def test_two_copies_of_one_mirror_at_once(contexts: Contexts):
    mirror = await contexts.sync()
    steps = [FileAction(action=copy("/", f"/{name}/"), input=0, second_input=1, output=0) for name in "abcd"]
    stacks = await asyncio.gather(*(contexts.trees.apply([step], ["", mirror], layered=True) for step in steps))
    for name, [stack] in zip("abcd", stacks, strict=True):
        assert contexts.looks(contexts.made(stack) / name) == contexts.looks(contexts.context)
    (contexts.context / "src/5/299").write_bytes(b"changed")
    mirror = await contexts.sync()
    for name in "abcd":
        stack, _ = await contexts.copied(mirror, copy("/", f"/{name}/"))
        assert contexts.looks(contexts.made(stack) / name) == contexts.looks(contexts.context)


async def test_a_mirror_of_its_own_beside_one_that_is_in_use(contexts: Contexts):
    first = await contexts.sync()
    await contexts.copied(first, copy("/", "/new/"))
    (contexts.context / "src/0/7").write_bytes(b"changed")
    second = await contexts.sync(take=False)
    assert contexts.places(second) == []
    stack, _ = await contexts.copied(second, copy("/", "/new/"))
    assert contexts.looks(contexts.made(stack) / "new") == contexts.looks(contexts.context)


def _link(context: Path) -> None:
    os.link(context / "src/0/3", context / "src/same")


def _attribute(context: Path) -> None:
    os.setxattr(context / "src/0/3", "user.x", b"1")


def _pipe(context: Path) -> None:
    os.mkfifo(context / "src/pipe")


@pytest.mark.parametrize("change", [_link, _attribute, _pipe])
async def test_what_is_not_simple_is_looked_at(contexts: Contexts, change: Callable[[Path], None]):
    change(contexts.context)
    mirror = await contexts.sync()
    stack, _ = await contexts.copied(mirror, copy("/", "/new/"))
    new = contexts.made(stack) / "new"
    assert contexts.looks(new) == contexts.looks(contexts.context)
    assert os.listxattr(new / "src/0/3") == os.listxattr(contexts.context / "src/0/3")
    assert (new / "src/0/3").stat().st_nlink == (contexts.context / "src/0/3").stat().st_nlink


async def test_another_owner_and_mode(contexts: Contexts):
    mirror = await contexts.sync()
    stack, _ = await contexts.copied(mirror, copy("/src", "/new/", mode=0o640))
    modes = {stat.S_IMODE(path.lstat().st_mode) for path in contexts.made(stack).rglob("*") if not path.is_symlink()}
    assert modes == {0o640}
