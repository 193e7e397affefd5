"""What is kept of a tree between two syncs."""

import io

import pytest

from husk.storage.sync.table import NO_DIGEST, Table, read_table, write_table


def some_table():
    table = Table()
    table.messages = [b"one", b"", b"three"]
    table.paths = [b"a", b"a/\xff", b"b"]
    table.digests = [NO_DIGEST, b"x" * 32, b"y" * 32]
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


def test_contents_are_those_of_plain_files():
    assert some_table().contents() == {b"a/\xff": b"x" * 32, b"b": b"y" * 32}


@pytest.mark.parametrize("cut", range(len(written(some_table()))))
def test_a_table_that_was_not_written_whole_is_none(cut):
    assert read_table(io.BytesIO(written(some_table())[:cut])) is None


def test_what_is_behind_a_table_makes_it_none():
    assert read_table(io.BytesIO(written(some_table()) + b"!")) is None
