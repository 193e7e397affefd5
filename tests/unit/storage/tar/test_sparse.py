"""Maps of files with holes: they describe the data and the file, or they are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.storage.tar.entry import BLOCK, LARGEST_EXTENSION, REGULAR, TarEntry, TarError
from husk.storage.tar.sparse import DataMap, decimal, set_sparse
from tests.support.work import memory_for


def entry(size: int) -> TarEntry:
    return TarEntry(b"f", REGULAR, 0o644, 0, 0, size, 0, b"")


def test_a_map_that_fits_is_taken():
    found = entry(30)
    set_sparse(found, [0, 10, 100, 20], 200)
    assert (found.sparse, found.real_size) == ([(0, 10), (100, 20)], 200)


@pytest.mark.parametrize(
    ("numbers", "size", "real_size"),
    [
        ([0, 10, 5, 10], 20, 100),
        ([0, 10], 11, 100),
        ([95, 10], 10, 100),
        ([0], 0, 100),
        ([0, -1], -1, 100),
        ([], 0, -1),
    ],
)
def test_a_map_that_does_not_fit_is_refused(numbers: list[int], size: int, real_size: int):
    with pytest.raises(TarError, match="invalid sparse map"):
        set_sparse(entry(size), numbers, real_size)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 1000)), max_size=200))
def test_a_map_in_front_of_the_data_comes_out_of_its_blocks(gaps: list[tuple[int, int]]):
    pieces, position = [], 0
    for gap, length in gaps:
        pieces.append((position + gap, length))
        position += gap + length
    text = b"%d\n" % len(pieces) + b"".join(b"%d\n%d\n" % piece for piece in pieces)
    text += bytes(-len(text) % BLOCK)
    data = sum(length for _, length in pieces)
    found = entry(len(text) + data)
    found.real_size = position
    reading = DataMap(found.size + BLOCK)
    for at in range(0, len(text), BLOCK):
        assert reading.more
        reading.add(text[at : at + BLOCK])
    assert not reading.more
    reading.apply(found)
    assert found.size == data
    assert found.sparse == (pieces or (None if position == 0 else [(0, 0)]))


def test_a_map_that_never_ends_is_refused():
    reading = DataMap(1 << 40)
    with pytest.raises(TarError, match="invalid sparse map"):
        for _ in range(LARGEST_EXTENSION // BLOCK + 2):
            reading.add(b"1" * BLOCK)


def test_a_map_that_is_longer_than_the_data_is_refused():
    with pytest.raises(TarError, match="invalid sparse map"):
        DataMap(BLOCK - 1)


@pytest.mark.parametrize("digits", [b"", b"-1", b" 1", b"1x", b"1" * 21])
def test_what_is_no_number_is_refused(digits: bytes):
    with pytest.raises(TarError):
        decimal(digits)


def test_a_block_of_a_map_costs_the_same_however_many_came_before():
    reading = DataMap(1 << 40)
    reading.add(b"%d\n" % 10**6 + b"1\n" * 252 + b"\n" * (BLOCK - 8 - 504))
    for _ in range(1500):
        reading.add(b"1\n" * (BLOCK // 2))
    assert memory_for(lambda: reading.add(b"1\n" * (BLOCK // 2))) < 64 * BLOCK
    assert reading.more
