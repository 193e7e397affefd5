"""The context of a build that comes as an archive."""

import bz2
import gzip
import lzma
import os
import tarfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import zstandard

from husk.errors import InvalidParameter
from tests.support.layers import Member, Store, directory, hard_link, make_tar, member, symlink
from tests.support.trees import Forest


@pytest.fixture
def forest(store: Store, tmp_path: Path) -> Forest:
    return Forest(store, tmp_path / "shown")


async def unpacked(forest: Forest, data: bytes, piece: int = 1000) -> str:
    async def chunks() -> AsyncIterator[bytes]:
        for at in range(0, len(data), piece):
            yield data[at : at + piece]

    return await forest.contexts.unpack(chunks())


@pytest.mark.parametrize(
    "compress", [bytes, gzip.compress, bz2.compress, lzma.compress, zstandard.ZstdCompressor().compress]
)
async def test_all_files_are_roots(forest: Forest, compress: Callable[[bytes], bytes]):
    tar = make_tar(
        directory("./", mode=0o700),
        member("Dockerfile", b"FROM scratch", uid=1000, gid=1000, mode=0o640, mtime=77),
        directory("d", uid=5),
        member("d/.wh.x", b"no mark"),
        symlink("link", "d"),
        hard_link("same", "Dockerfile"),
    )
    stack = await unpacked(forest, compress(tar))
    assert forest.listing(stack) == {
        "Dockerfile": "FROM scratch", "d/": "", "d/.wh.x": "no mark", "link": "-> d", "same": "FROM scratch",
    }  # fmt: skip
    status = forest.status(stack, "Dockerfile")
    assert (status.st_uid, status.st_gid, status.st_mtime, status.st_nlink) == (0, 0, 77, 2)
    assert forest.owner(stack, "d") == (0, 0)


@pytest.mark.parametrize(
    "hostile",
    [
        member("device", type=tarfile.CHRTYPE, devmajor=1, devminor=3),
        member("disk", type=tarfile.BLKTYPE, devmajor=8, devminor=0),
        member("../out", b"x"),
        member("a/../../out", b"x"),
        hard_link("link", "../../etc/passwd"),
    ],
    ids=["character device", "block device", "out", "out in the middle", "link out"],
)
async def test_what_no_context_may_have(forest: Forest, hostile: Member):
    with pytest.raises(InvalidParameter):
        await unpacked(forest, make_tar(member("ok", b"1"), hostile))
    await forest.store.emptied()
    assert forest.store.nothing_left()


async def test_a_link_leads_to_the_context_itself(forest: Forest, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    with pytest.raises(InvalidParameter, match="l/file cannot be made"):
        await unpacked(forest, make_tar(symlink("l", str(outside)), member("l/file", b"x")))
    assert os.listdir(outside) == []
    stack = await unpacked(forest, make_tar(directory("x"), symlink("l", "../../x"), member("l/file", b"x")))
    assert forest.listing(stack) == {"x/": "", "x/file": "x", "l": "-> ../../x"}


async def test_names_that_are_not_utf8(forest: Forest):
    stack = await unpacked(forest, make_tar(member(os.fsdecode(b"\xff"), b"1"), format=tarfile.GNU_FORMAT))
    assert forest.listing(stack) == {os.fsdecode(b"\xff"): "1"}


async def test_what_is_no_archive(forest: Forest):
    for data in (b"nonsense" * 200, make_tar(member("a", b"1" * 5000))[:2000], gzip.compress(b"x" * 5000)[:-5]):
        with pytest.raises(InvalidParameter):
            await unpacked(forest, data)
    assert forest.diffs.all() == []
    assert forest.listing(await unpacked(forest, make_tar())) == {}


async def test_a_client_that_leaves_in_the_middle_leaves_nothing(forest: Forest):
    async def chunks() -> AsyncIterator[bytes]:
        yield make_tar(member("a", b"1" * 5000))[:2000]
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await forest.contexts.unpack(chunks())
    await forest.store.emptied()
    assert forest.store.nothing_left()
