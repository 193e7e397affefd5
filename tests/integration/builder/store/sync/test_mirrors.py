"""Mirrors of a client's directory, one build after another."""

import asyncio
import errno
import os
from pathlib import Path

import pytest

from husk.builder.store.sync import packets
from husk.builder.store.sync.exchange import exchange
from husk.builder.store.sync.mirrors import Mirrors
from husk.builder.store.sync.packets import Stat
from husk.builder.store.sync_table import read_table
from husk.builder.store.workers.jobs import SendJob
from husk.errors import InvalidParameter
from husk.storage.workers.nursery import Nursery
from tests.integration.builder.store.sync.test_workers import channel
from tests.support.layers import Store


async def yes(element):
    return True


async def no(element):
    return False


class Builds:
    def __init__(self, store, nursery, tmp_path):
        self.store = store
        self.nursery = nursery
        self.root = tmp_path / "mirrors"
        self.context = tmp_path / "context"
        self.context.mkdir()
        self.mirrors = Mirrors.open(self.root, store.diffs, nursery)

    async def sync(self, take=yes, key="context::me", anew=False):
        theirs, ours = channel()
        job = SendJob(root=str(self.context), prefix="", mtime=None)
        sync = self.mirrors.sync(key, ours, take, anew=anew)
        _, element = await asyncio.gather(exchange(self.nursery, job, theirs), sync)
        return element

    def files(self, element):
        (place,) = self.store.diffs.lower(element)
        return {name: os.stat(os.path.join(place, name)).st_ino for name in os.listdir(place)}


@pytest.fixture
async def builds(store: Store, tmp_path):
    nursery = Nursery()
    yield Builds(store, nursery, tmp_path)
    nursery.close()


async def test_the_next_build_goes_on_with_the_files_of_the_last(builds):
    (builds.context / "same").write_bytes(b"same")
    (builds.context / "changed").write_bytes(b"one")
    first = await builds.sync()
    before = builds.files(first)
    assert builds.store.diffs.size(first) == 7
    (builds.context / "changed").write_bytes(b"three")
    second = await builds.sync()
    after = builds.files(second)
    assert second != first
    assert not builds.store.diffs.has(first)
    assert after["same"] == before["same"]
    assert builds.store.diffs.size(second) == 9
    assert len(list(builds.root.iterdir())) == 1


async def test_a_mirror_that_is_still_needed_stays_as_it_is(builds):
    (builds.context / "file").write_bytes(b"one")
    first = await builds.sync()
    (builds.context / "file").write_bytes(b"three")
    second = await builds.sync(take=no)
    async with builds.store.diffs.held(first, second):
        third = await builds.sync()
    for element, content in ((first, b"one"), (second, b"three"), (third, b"three")):
        (place,) = builds.store.diffs.lower(element)
        with open(f"{place}/file", "rb") as file:
            assert file.read() == content


async def test_a_mirror_that_its_owner_gives_up_while_somebody_reads_it_goes_afterwards(builds):
    first = await builds.sync()
    store = builds.store

    async def take(element):
        await reading.__aenter__()
        return True

    reading = store.diffs.held(first)
    second = await builds.sync(take=take)
    assert store.diffs.all() == [second], "nobody's record names the first"
    await reading.__aexit__(None, None, None)
    await store.emptied()
    assert len(os.listdir(store.root / "layers/l")) == 1


async def test_other_directories_have_other_mirrors(builds):
    (builds.context / "file").write_bytes(b"one")
    first = await builds.sync()
    second = await builds.sync(key="context::you")
    assert builds.store.diffs.has(first)
    assert builds.files(first) != builds.files(second)


async def test_the_table_of_a_mirror_tells_of_its_files(builds):
    (builds.context / "file").write_bytes(b"one")
    element = await builds.sync()
    with builds.mirrors.table(element).open("rb") as file:
        table = read_table(file)
    assert table
    assert table.paths == [b"file"]
    assert builds.mirrors.table("diff:other") is None


async def test_an_empty_directory_is_a_mirror_too(builds):
    first = await builds.sync()
    assert builds.files(first) == {}
    (builds.context / "file").write_bytes(b"one")
    assert list(builds.files(await builds.sync())) == ["file"]


async def test_a_failed_sync_leaves_nothing(builds):
    (builds.context / "file").write_bytes(b"one")
    first = await builds.sync()
    theirs, ours = channel()
    await theirs.send(packets.stat(Stat(b"/etc", 0o644)))
    await theirs.end()
    with pytest.raises(InvalidParameter, match="invalid path"):
        await builds.mirrors.sync("context::me", ours, yes)
    assert not builds.store.diffs.has(first)
    assert list(builds.root.iterdir()) == []
    assert builds.store.diffs.all() == []
    assert await builds.sync()


async def test_a_table_that_finds_no_room_leaves_nothing(builds, monkeypatch):
    def full(self, target):
        raise OSError(errno.ENOSPC, "no space left on device")

    (builds.context / "file").write_bytes(b"one")
    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(OSError, match="no space left"):
        await builds.sync()
    assert builds.store.diffs.all() == []
    assert list(builds.root.iterdir()) == []


async def test_tables_of_mirrors_that_are_gone_go(builds):
    (builds.context / "file").write_bytes(b"one")
    element = await builds.sync()
    (builds.root / "7.new").write_bytes(b"cut off")
    await builds.store.diffs.remove([element])
    Mirrors.open(builds.root, builds.store.diffs, builds.nursery)
    assert list(builds.root.iterdir()) == []


async def test_a_mirror_that_is_taken_over_keeps_its_table_while_others_begin(builds):
    (builds.context / "same").write_bytes(b"same")
    first = await builds.sync()
    others = await asyncio.gather(*(builds.sync() for _ in range(8)))
    assert len(set(others)) == len(others)
    assert all(list(builds.files(element)) == ["same"] for element in others)
    assert not builds.store.diffs.has(first)


async def test_what_is_sent_anew_replaces_what_nobody_needs(builds):
    (builds.context / "file").write_bytes(b"one")
    await builds.sync(key="other")
    elements = [await builds.sync(anew=True) for _ in range(5)]
    await builds.mirrors.close()
    assert [builds.store.diffs.has(element) for element in elements] == [False] * 4 + [True]
    assert len(list(builds.root.iterdir())) == 2
    needed = elements[-1]
    async with builds.store.diffs.held(needed):
        before = builds.files(needed)
        await builds.sync(anew=True)
        last = await builds.sync(anew=True, take=no)
        await builds.mirrors.close()
        assert builds.files(needed) == before
    assert builds.files(last) != before
    assert len(list(builds.root.iterdir())) == 4


async def test_what_is_sent_anew_is_compared_with_nothing(builds):
    (builds.context / "file").write_bytes(b"one")
    times = (builds.context / "file").stat()
    await builds.sync(anew=True)
    (builds.context / "file").write_bytes(b"two")
    os.utime(builds.context / "file", ns=(times.st_atime_ns, times.st_mtime_ns))
    (place,) = builds.store.diffs.lower(await builds.sync(anew=True))
    with open(f"{place}/file", "rb") as file:
        assert file.read() == b"two"
    await builds.mirrors.close()


async def test_the_table_of_a_diff_goes_with_it_and_the_next_daemon_knows_the_others(builds):
    (builds.context / "file").write_bytes(b"one")
    one, two = await builds.sync(key="one"), await builds.sync(key="two")
    await builds.store.diffs.remove([one])
    assert builds.mirrors.table(one) is None
    assert [builds.mirrors.table(two)] == list(builds.root.iterdir())
    builds.store.diffs.listeners.clear()  # the daemon before has ended
    builds.mirrors = Mirrors.open(builds.root, builds.store.diffs, builds.nursery)
    before = builds.files(two)
    assert builds.files(await builds.sync(key="two")) == before


async def test_no_sync_looks_through_all_mirrors(builds, monkeypatch):
    (builds.context / "file").write_bytes(b"one")
    for number in range(3):
        await builds.sync(key=f"{number}")
    looked_at = set()

    def note(method):
        def noted(element):
            looked_at.add(element)
            return method(element)

        return noted

    for name in ("has", "alone"):
        monkeypatch.setattr(builds.store.diffs, name, note(getattr(builds.store.diffs, name)))
    for name in ("iterdir", "glob"):
        monkeypatch.setattr(type(builds.root), name, lambda *_: pytest.fail("a directory is looked through"))
    await builds.sync(key="new")
    await builds.sync(key="new", anew=True)
    await builds.mirrors.close()
    assert len(looked_at) == 1
