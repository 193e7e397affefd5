"""Records that are kept of a tree between two syncs."""

import io
import stat

import pytest

from husk.builder.store import sync_table
from husk.builder.store.sync_table import (
    DIGEST_SIZE,
    NO_LOOK,
    NO_PLACE,
    Brief,
    Listed,
    PackedTree,
    SyncTable,
    content_hash,
    look_digest,
    pack_brief,
    read_listed,
    read_looks,
    read_packed,
    read_table,
    write_packed,
    write_table,
)

BRIEFS = [Brief(0o40755, 0, 0, 0, -1), Brief(0o100644, 1, 2, 7, 1 << 60), Brief(0o100644, (1 << 32) - 1, 0, 0, 5)]
PACKED = PackedTree("sha256:" + "0" * 64, "this boot", "a key")


def some_table():
    table = SyncTable()
    table.add(b"one", b"a", b"w" * 32, pack_brief(BRIEFS[0]))
    table.add(b"", b"a/\xff", b"x" * 32, pack_brief(BRIEFS[1]))
    table.add(b"three", b"b", b"y" * 32, pack_brief(BRIEFS[2]))
    table.links = {b"b": b"a/\xff"}
    table.size = 7
    return table


def written(table):
    file = io.BytesIO()
    write_table(table, file)
    return file.getvalue()


@pytest.mark.parametrize("table", [SyncTable(), some_table()], ids=["empty", "some"])
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
    assert read_looks(io.BytesIO(written(SyncTable()))) == {}


@pytest.mark.parametrize("cut", range(len(written(some_table()))))
def test_a_table_that_was_not_written_whole_is_none(cut):
    assert read_table(io.BytesIO(written(some_table())[:cut])) is None


def test_what_is_behind_a_table_makes_it_none():
    assert read_table(io.BytesIO(written(some_table()) + b"!")) is None


def test_what_copies_have_to_know():
    table = some_table()
    assert read_listed(io.BytesIO(written(table))) is None  # one is a hard link
    table.links = {}
    assert read_listed(io.BytesIO(written(table))) == Listed(table.paths, BRIEFS, [NO_PLACE] * 3)
    table.briefs[1] = pack_brief(BRIEFS[1]._replace(mode=0))
    assert read_listed(io.BytesIO(written(table))) is None
    assert read_listed(io.BytesIO(written(SyncTable()))) == Listed([], [], [])
    assert read_listed(io.BytesIO(b"something else")) is None


def test_places_in_a_tar_are_noted_in_a_table_that_is_there():
    table = some_table()
    table.links = {}
    file = io.BytesIO(written(table))
    assert read_packed(file) is None
    write_packed(file, [0, NO_PLACE, 1 << 40], PACKED)
    assert read_packed(file) == PACKED
    file.seek(0)
    assert read_listed(file) == Listed(table.paths, BRIEFS, [0, NO_PLACE, 1 << 40])
    file.seek(0)
    again = read_table(file)
    assert again is not None
    assert read_packed(io.BytesIO(written(again))) == PACKED
    assert (again.messages, again.paths, again.looks) == (table.messages, table.paths, table.looks)


@pytest.mark.parametrize("moment", range(1, 3))
def test_whoever_is_killed_while_noting_places_leaves_none(moment):
    class Killed(Exception):
        pass

    class Dying(io.BytesIO):
        flushed = 0

        def flush(self):
            self.flushed += 1
            if self.flushed == moment:
                raise Killed

    table = some_table()
    file = io.BytesIO(written(table))
    write_packed(file, [1, 2, 3], PACKED)
    dying = Dying(file.getvalue())
    with pytest.raises(Killed):
        write_packed(dying, [4, 5, 6], PackedTree("another", "boot", "key"))
    assert read_packed(io.BytesIO(dying.getvalue())) is None


def test_a_description_has_its_room():
    with pytest.raises(ValueError, match="too many words"):
        write_packed(io.BytesIO(written(some_table())), [1, 2, 3], PackedTree("x" * 512, "", ""))


def test_everything_that_is_given_counts():
    plain, content, xattrs = stat.S_IFREG | 0o644, content_hash(b"x").digest(), [("user.a", b"1")]
    looks = [
        look_digest(plain, 1, 2, 0, content, xattrs),
        look_digest(plain & ~0o044, 1, 2, 0, content, xattrs),
        look_digest(plain, 2, 2, 0, content, xattrs),
        look_digest(plain, 1, 1, 0, content, xattrs),
        look_digest(plain, 1, 2, 5, content, xattrs),
        look_digest(plain, 1, 2, 0, content_hash(b"y").digest(), xattrs),
        look_digest(plain, 1, 2, 0, content, [("user.a", b"2")]),
    ]
    assert len(set(looks)) == len(looks)
    assert {len(look) for look in looks} == {DIGEST_SIZE}


def test_contents_are_hashed_in_pieces_or_at_once():
    pieces = content_hash()
    pieces.update(b"con")
    pieces.update(memoryview(b"tent"))
    assert pieces.digest() == content_hash(b"content").digest() == content_hash(memoryview(b"content")).digest()


def test_a_host_without_the_package_has_another_hash(monkeypatch):
    usual = content_hash(b"content").digest()
    monkeypatch.setattr(sync_table, "blake3", None)
    other = content_hash(b"content").digest()
    assert other != usual
    assert len(other) == len(usual) == DIGEST_SIZE
