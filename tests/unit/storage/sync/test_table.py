"""What is kept of a tree between two syncs."""

import io

import pytest

from husk.storage.sync.table import NO_LOOK, Table, read_looks, read_table, write_table


def some_table():
    table = Table()
    table.messages = [b"one", b"", b"three"]
    table.paths = [b"a", b"a/\xff", b"b"]
    table.looks = [b"w" * 32, b"x" * 32, b"y" * 32]
    table.links = {b"b": b"a/\xff"}
    table.size = 7
    return table


def written(table):
    file = io.BytesIO()
    write_table(table, file)
    return file.getvalue()


@pytest.mark.parametrize("table", [Table(), some_table()], ids=["empty", "some"])
def test_a_table_is_read_as_it_was_written(table):
    again = read_table(io.BytesIO(written(table)))
    assert vars(again) == vars(table)


def test_looks_are_told_by_paths_in_order_or_not_at_all():
    table = some_table()
    looks = read_looks(io.BytesIO(written(table)))
    assert list(looks.items()) == [(b"a", b"w" * 32), (b"a/\xff", b"x" * 32), (b"b", b"y" * 32)]
    table.looks[1] = NO_LOOK
    assert read_looks(io.BytesIO(written(table))) == {}
    assert read_looks(io.BytesIO(b"something else")) == {}
    assert read_looks(io.BytesIO(written(Table()))) == {}


@pytest.mark.parametrize("cut", range(len(written(some_table()))))
def test_a_table_that_was_not_written_whole_is_none(cut):
    assert read_table(io.BytesIO(written(some_table())[:cut])) is None


def test_what_is_behind_a_table_makes_it_none():
    assert read_table(io.BytesIO(written(some_table()) + b"!")) is None
