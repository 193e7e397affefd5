"""Archives that a build adds are unpacked where they are added."""

import asyncio
import bz2
import gzip
import lzma
import os
import tarfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import zstandard

from husk.builder.store.file_actions import Owner
from husk.errors import InvalidParameter
from tests.support.layers import Store, directory, make_tar, member, symlink
from tests.support.trees import Forest, copy, do
from tests.support.waiting import soon, until_async
from tests.support.workers import children_of, workers_of


@pytest.fixture
async def forest(store: Store, tmp_path: Path) -> AsyncIterator[Forest]:
    yield Forest(store, tmp_path / "shown")
    assert os.listdir(tmp_path / "layers/w") == []


ARCHIVE = make_tar(
    directory("d", mode=0o700, uid=3), member("d/file", b"text", mtime=99), symlink("l", "/d"), member("l/in", b"x")
)


@pytest.mark.parametrize(
    "compress", [bytes, gzip.compress, bz2.compress, lzma.compress, zstandard.ZstdCompressor().compress]
)
async def test_an_archive_is_unpacked_where_it_is_added(forest: Forest, compress: Callable[[bytes], bytes]):
    source = await forest.plant(lambda root: (root / "a.tar").write_bytes(compress(ARCHIVE)))
    target = await forest.files(dst__old="old")
    stack = await do(forest, copy("/a.tar", "/dst/", unpack=True), target, source)
    # A link of the archive leads to its own top.
    assert forest.listing(stack) == {
        "dst/": "", "dst/d/": "", "dst/d/file": "text", "dst/d/in": "x", "dst/l": "-> /d", "dst/old": "old",
    }  # fmt: skip
    assert (forest.owner(stack, "dst/d"), forest.status(stack, "dst/d/file").st_mtime) == ((3, 0), 99)
    owned = await do(forest, copy("/a.tar", "/dst/", unpack=True, user=Owner(number=8)), target, source)
    assert forest.owner(owned, "dst/d") == (8, 8)


async def test_what_is_no_archive_is_copied(forest: Forest):
    source = await forest.plant(
        lambda root: [(root / name).write_bytes(data) for name, data in (("a", b"no"), ("b", b""), ("c", bytes(1024)))]
    )
    stack = await do(forest, copy("/*", "/", unpack=True), "", source)
    assert set(forest.listing(stack)) == {"a", "b", "c"}


async def test_a_damaged_archive_fails_and_leaves_nothing(forest: Forest):
    source = await forest.plant(lambda root: (root / "a").write_bytes(make_tar(member("f", b"1" * 9000))[:3000]))
    with pytest.raises(InvalidParameter):
        await do(forest, copy("/a", "/", unpack=True), "", source)
    assert forest.diffs.all() == [source]


async def test_an_archive_brings_no_more_than_the_disk_can_spare(forest: Forest):
    """It is refused by what it says of its files, before they are written."""
    large = tarfile.TarInfo("large")
    large.size = 1 << 50
    source = await forest.plant(lambda root: (root / "a.tar").write_bytes(large.tobuf(tarfile.PAX_FORMAT)))
    with pytest.raises(InvalidParameter, match="the archive is larger than what the disk has room for"):
        await do(forest, copy("/a.tar", "/", unpack=True), "", source)
    assert forest.diffs.all() == [source]


async def test_the_process_that_unpacks_ends_with_its_build(forest: Forest):
    # Behind its end there are zeros for some minutes, none of which are written.
    endless = zstandard.compress(ARCHIVE) + zstandard.compress(bytes(1 << 27)) * 12_000
    source = await forest.plant(lambda root: (root / "a.tar").write_bytes(endless))
    adding = soon(do(forest, copy("/a.tar", "/", unpack=True), "", source))
    try:
        (unpacking,) = await until_async(
            lambda: {child for worker in workers_of(os.getpid()) for child in children_of(worker)}, "it is unpacked"
        )
    finally:
        adding.cancel()
        await asyncio.wait([adding])
    await until_async(lambda: not Path(f"/proc/{unpacking}").exists(), "nobody goes on")
