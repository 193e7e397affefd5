"""A tar that arrives in pieces: entries, long names, links, and every way to be cut off."""

import io
import tarfile
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.storage.tar.entry import REGULAR, SYMLINK, TarError
from husk.storage.tar.flow import TarFlow
from tests.support.archives import DIALECTS, archive_of
from tests.support.registry import tar_of

LONG = "a" * 150 + "/" + "b" * 150


async def chunks(data: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


async def read_all(data: bytes, size: int) -> dict[str, bytes]:
    flow, found = TarFlow(chunks(data, size)), {}
    while (entry := await flow.next()) is not None:
        if entry.kind == REGULAR:
            found[entry.name.decode()] = b"".join([bytes(piece) async for piece in flow.pieces()])
    await flow.drain()
    return found


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,9}(/[a-z]{1,9}){0,2}", fullmatch=True), st.binary(max_size=2000), max_size=5
    ),
    st.integers(1, 3000),
)
async def test_files_come_out_however_the_archive_is_cut(files: dict[str, bytes], size: int) -> None:
    assert await read_all(tar_of(files), size) == files


@pytest.mark.parametrize("format", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
async def test_long_names_and_links(format: int) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as tar:
        link = tarfile.TarInfo(LONG)
        link.type, link.linkname = tarfile.SYMTYPE, LONG + "c"
        tar.addfile(link)
    entry = await TarFlow(chunks(out.getvalue(), 100)).next()
    assert entry is not None
    assert (entry.kind, entry.name.decode(), entry.link.decode()) == (SYMLINK, LONG, LONG + "c")


async def test_an_entry_may_be_read_in_part_or_not_at_all() -> None:
    flow = TarFlow(chunks(tar_of({"one": b"x" * 1000, "two": b"y" * 1000, "three": b"z"}), 700))
    assert await flow.next() and await flow.read(10) == b"x" * 10
    assert await flow.next()
    assert await flow.next() and await flow.read(100) == b"z"
    assert await flow.next() is None


@pytest.mark.parametrize("length", [100, 700, 1500])
async def test_an_archive_that_is_cut_off(length: int) -> None:
    with pytest.raises(TarError, match="unexpected EOF"):
        await read_all(tar_of({"file": b"x" * 3000})[:length], 400)


@pytest.mark.parametrize("behind", [0, 100])
async def test_an_archive_may_end_behind_the_last_byte_of_a_file(behind: int) -> None:
    assert await read_all(tar_of({"file": b"x" * 700})[: 512 + 700 + behind], 400) == {"file": b"x" * 700}


async def test_what_is_no_archive() -> None:
    with pytest.raises(TarError):
        await read_all(b"this is no archive" * 100, 1000)


@given(
    st.sampled_from([dialect for dialect in DIALECTS if "sparse" not in dialect]),
    st.integers(0, 9000),
    st.integers(1, 3000),
)
async def test_an_archive_of_any_dialect_cut_anywhere_ends(dialect: str, cut: int, size: int) -> None:
    whole = await read_all(archive_of(dialect), 10_000)
    try:
        found = await read_all(archive_of(dialect)[:cut], size)
    except TarError as error:
        assert str(error) == "unexpected EOF"
    else:
        assert found.items() <= whole.items()


@pytest.mark.parametrize("dialect", [dialect for dialect in DIALECTS if "sparse" in dialect])
async def test_sparse_files_are_refused(dialect: str) -> None:
    with pytest.raises(TarError, match="sparse"):
        await read_all(archive_of(dialect), 1000)
