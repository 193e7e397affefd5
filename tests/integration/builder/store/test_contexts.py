"""Contexts of builds that come as archives."""

import gzip
import hashlib
import io
import os
import tarfile
from collections.abc import AsyncIterator

import pytest

from husk.builder.store.contexts import Contexts
from husk.errors import InvalidParameter
from tests.support.layers import Store


def archive(**files: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name.replace("__", "/"))
            info.size, info.uid, info.gid = len(content), 1000, 1000
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


async def in_pieces(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), 1000):
        yield data[start : start + 1000]


@pytest.fixture
def contexts(store: Store) -> Contexts:
    return Contexts(store.diffs, store.nursery)


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
async def test_an_archive_becomes_a_stack_whose_files_belong_to_root(store, contexts, compress):
    stack = await contexts.unpack(in_pieces(compress(archive(Dockerfile=b"FROM x", sub__file=b"y"))))
    (directory,) = store.diffs.lower(stack)
    assert os.stat(f"{directory}/sub/file").st_uid == 0
    assert await contexts.read(stack, "Dockerfile", 100) == b"FROM x"
    assert await contexts.read(stack, "sub/file", 0) == b""
    assert await contexts.read(stack, "missing", 100) is None
    assert await contexts.read(stack, "sub", 100) is None
    assert await contexts.read_several(stack, ["missing", "Dockerfile"], 100) == [None, b"FROM x"]


async def test_a_part_of_a_file_is_read_and_nothing_before_it(store, contexts):
    stack = await contexts.unpack(in_pieces(archive(large=bytes(1 << 20) + b"end", Dockerfile=b"FROM x")))
    upon = " ".join([stack, await contexts.unpack(in_pieces(archive(other=b"y")))])
    for one in (stack, upon):
        assert await contexts.read(one, "large", 2, 1 << 20) == b"en"
        assert await contexts.read(one, "large", 100, (1 << 20) + 2) == b"d"
        assert await contexts.read(one, "large", 100, (1 << 63) - 1) == b""


async def test_a_small_archive_of_plain_files_needs_no_worker(store, contexts):
    employed = store.nursery.employed
    stack = await contexts.unpack(in_pieces(archive(Dockerfile=b"FROM x", other=b"y")))
    (directory,) = store.diffs.lower(stack)
    assert (os.stat(f"{directory}/other").st_uid, store.diffs.size(stack)) == (0, 7)
    assert await contexts.read(stack, "Dockerfile", 100) == b"FROM x"
    assert store.nursery.employed == employed
    await contexts.unpack(in_pieces(archive(large=bytes(1 << 18))))
    assert store.nursery.employed == employed + 1


async def test_links_lead_nowhere_else(store, contexts):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo("Dockerfile")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(info)
    stack = await contexts.unpack(in_pieces(out.getvalue()))
    assert await contexts.read(stack, "Dockerfile", 100) is None


async def test_a_context_that_holds_itself_is_refused_and_leaves_nothing(store, contexts):
    before = set(store.diffs.directories.path.iterdir())
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name in (f"l/{number}" for number in range(1, 10)):  # one of these it will be
            for path in (name, f"{name}/l", f"{name}/{name}"):
                info = tarfile.TarInfo(path)
                info.type = tarfile.DIRTYPE
                tar.addfile(info)
    with pytest.raises(InvalidParameter, match="holds the engine's own data root"):
        await contexts.unpack(in_pieces(out.getvalue()))
    assert set(store.diffs.directories.path.iterdir()) == before


async def test_rubbish_is_refused_and_leaves_nothing(store, contexts):
    before = store.directories()
    with pytest.raises(InvalidParameter, match="archive/tar: invalid tar header"):
        await contexts.unpack(in_pieces(b"this is no archive" * 100))
    await store.emptied()
    assert store.directories() == before


async def test_an_empty_body_is_an_empty_context(contexts):
    assert await contexts.read(await contexts.unpack(in_pieces(archive())), "Dockerfile", 100) is None


async def test_files_of_results_are_read_as_a_step_would_see_them(store, contexts):
    first = await contexts.unpack(in_pieces(archive(a=b"1", b=b"1")))
    second = await contexts.unpack(in_pieces(archive(b=b"2")))
    both = f"{first} {second}"
    assert [await contexts.read(both, name, 10) for name in ("a", "b", "c")] == [b"1", b"2", None]
    assert await contexts.read_several(both, ["c", "b"], 10) == [None, b"2"]


async def test_a_single_file(store, contexts):
    stack, digest = await contexts.keep_file("name", in_pieces(b"x" * 2500), mode=0o640, owner=(5, 6))
    assert digest == "sha256:" + hashlib.sha256(b"x" * 2500).hexdigest()
    (directory,) = store.diffs.lower(stack)
    status = os.stat(f"{directory}/name")
    assert (status.st_size, status.st_mode & 0o7777, status.st_uid, status.st_gid) == (2500, 0o640, 5, 6)
    assert status.st_mtime_ns == os.stat(directory).st_mtime_ns == 0
