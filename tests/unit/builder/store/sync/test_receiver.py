"""Decisions of a receiver, with a tree in memory and a sender made of the packets themselves."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from husk.builder.store.space import doubled
from husk.builder.store.sync import packets
from husk.builder.store.sync.packets import MODE_DIRECTORY, MODE_SYMLINK, Stat, SyncError
from husk.builder.store.sync.receiver import Receiver, look_of
from husk.builder.store.sync.sender import Sender
from husk.builder.store.sync_table import SyncTable, content_hash


class Memory:
    """A tree: path -> (stat, data)."""

    def __init__(self):
        self.files = {}
        self.awaited = {}
        self.digests = {}
        self.log = []

    def is_directory(self, path):
        return path == b"" or (path in self.files and bool(self.files[path][0].mode & MODE_DIRECTORY))

    def remove(self, paths):
        for path in reversed(paths):
            assert not any(other.startswith(path + b"/") for other in self.files)
            del self.files[path]
            self.log.append(("remove", path))

    def _add(self, stat, data):
        above = stat.path.rpartition(b"/")[0]
        assert self.is_directory(above)
        self.files[stat.path] = (stat, data)

    def directory(self, stat, new):
        assert new != (stat.path in self.files)
        self._add(stat, None)

    def special(self, stat):
        assert stat.path not in self.files
        self._add(stat, None)

    def expect(self, number, stat):
        assert stat.path not in self.files
        self.log.append(("expect", stat.path))
        self.awaited[number] = (stat, [])

    def data(self, number, data):
        stat, chunks = self.awaited[number]
        if data:
            chunks.append(bytes(data))
            return None
        del self.awaited[number]
        whole = b"".join(chunks)
        self._add(stat, whole)
        self.digests[number] = content_hash(whole).digest()
        return len(whole)

    def digest(self, number):
        return self.digests.pop(number)

    def finish(self, links):
        for stat in links:
            self._add(stat, self.files[stat.link][1])


class Client:
    """A client that sends files: path -> data, None for a directory, a string for a symbolic link."""

    def __init__(self, files, mtime=1):
        self.files = files
        self.mtime = mtime

    def walk(self):
        for path in sorted(self.files, key=lambda path: path.split(b"/")):
            data = self.files[path]
            if data is None:
                yield Stat(path, MODE_DIRECTORY | 0o755)
            elif isinstance(data, str):
                yield Stat(path, MODE_SYMLINK | 0o777, link=data.encode())
            else:
                yield Stat(path, 0o644, size=len(data), mtime=self.mtime)

    def open(self, stat):
        data = self.files[stat.path]
        yield from (data[place : place + 3] for place in range(0, len(data), 3))


def sync(client, tree, old, pieces=1 << 20, limit=0):
    sender, receiver = Sender(client), Receiver(tree, old, limit=limit)
    while not receiver.ended:
        data = sender.next()
        for start in range(0, len(data), pieces):
            receiver.feed(data[start : start + pieces])
        if receiver.complete:
            receiver.finish()
        sender.feed(bytes(receiver.output))
        receiver.output.clear()
    assert sender.ended
    receiver.close()
    return receiver.table


def contents(tree):
    return {
        path: (stat.link.decode() if stat.mode & MODE_SYMLINK else data) for path, (stat, data) in tree.files.items()
    }


def looks(tree):
    return {
        path: look_of(stat, b"" if data is None else content_hash(data).digest())
        for path, (stat, data) in tree.files.items()
    }


TREE = {b"a": None, b"a/b": b"hello", b"a/b.c": b"", b"a/d": None, b"a/d/e": b"x" * 100, b"a.b": "a/b", b"z": b"end"}


@pytest.mark.parametrize("pieces", [1, 2, 3, 7, 1 << 20])
def test_a_tree_arrives(pieces):
    tree = Memory()
    table = sync(Client(TREE), tree, SyncTable(), pieces)
    assert contents(tree) == TREE
    assert dict(zip(table.paths, table.looks, strict=True)) == looks(tree)


def test_an_unchanged_tree_is_not_touched_and_nothing_is_asked_for():
    tree = Memory()
    table = sync(Client(TREE), tree, SyncTable())
    tree.log.clear()
    again = sync(Client(TREE), tree, table)
    assert tree.log == []
    assert vars(again) == vars(table)


def test_one_changed_file_is_asked_for():
    tree = Memory()
    table = sync(Client(TREE), tree, SyncTable())
    tree.log.clear()
    changed = TREE | {b"a/d/e": b"new"}
    sync(Client(changed), tree, table)
    assert tree.log == [("remove", b"a/d/e"), ("expect", b"a/d/e")]
    assert contents(tree) == changed


def test_more_than_there_is_room_for_is_refused():
    """The files that go make room for those that come."""
    tree = Memory()
    table = sync(Client(TREE), tree, SyncTable(), limit=108)
    sync(Client(TREE | {b"a/d/e": b"y" * 110}), tree, table, limit=10)
    for client in (Client(TREE), Client({b"a": b"x" * 108})):
        with pytest.raises(SyncError, match="larger than what the disk has room for"):
            sync(client, Memory(), SyncTable(), limit=107)


_names = some.sampled_from([b"a", b"a.b", b"a-", b"b", b"\xff", b"A", b"aa"])
_content = some.one_of(some.none(), some.binary(max_size=8), some.sampled_from(["target", "../x"]))


@some.composite
def trees(draw):
    files: dict[bytes, object] = {}
    for path, content in draw(some.lists(some.tuples(some.lists(_names, min_size=1, max_size=3), _content))):
        if all(files.get(b"/".join(path[:depth]), b"") is None for depth in range(1, len(path))):
            files.setdefault(b"/".join(path), content)
    return files


@settings(max_examples=300)
@given(some.lists(trees(), min_size=2, max_size=4), some.sampled_from([1, 5, 1 << 20]))
def test_any_tree_becomes_any_other(steps, pieces):
    tree, table = Memory(), SyncTable()
    for number, files in enumerate(steps):
        table = sync(Client(files, mtime=number), tree, table, pieces)
        assert contents(tree) == files
        assert table.size == sum(len(data) for data in files.values() if isinstance(data, bytes))
        assert dict(zip(table.paths, table.looks, strict=True)) == looks(tree)


@settings(max_examples=50)
@given(trees(), some.data())
def test_a_stream_that_is_cut_is_never_complete(files, data):
    """A client that goes in the middle leaves nothing that looks like all of its files."""
    sender, receiver = Sender(Client(files)), Receiver(Memory(), SyncTable())
    first = sender.next()
    end = data.draw(some.integers(0, len(first) - 1))
    receiver.feed(first[:end])
    assert not receiver.ended
    with pytest.raises(SyncError, match="unexpected EOF"):
        receiver.close()


# --- hard links ------------------------------------------------------------------------------------------------------


class Linked:
    def __init__(self, data, links=(b"b",)):
        self.data = data
        self.links = links

    def walk(self):
        yield Stat(b"a", 0o644, size=len(self.data))
        for path in self.links:
            yield Stat(path, 0o644, link=b"a")

    def open(self, stat):
        yield self.data


def test_a_hard_link_is_made_when_its_file_is_there():
    tree = Memory()
    sync(Linked(b"data"), tree, SyncTable())
    assert tree.files[b"b"][1] == b"data"


def test_an_unchanged_link_to_a_file_that_was_made_anew_is_made_anew():
    tree = Memory()
    table = sync(Linked(b"data"), tree, SyncTable())
    table = sync(Linked(b"other data"), tree, table)
    assert tree.files[b"b"][1] == b"other data"
    table = sync(Linked(b"third"), tree, table)
    assert tree.files[b"b"][1] == b"third"
    assert table.looks == [look_of(tree.files[b"a"][0], content_hash(b"third").digest())] * 2


# --- what a client must not say --------------------------------------------------------------------------------------


def told(*stats):
    return b"".join(map(packets.stat, stats))


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (told(Stat(b"../x", 0o644)), "invalid path"),
        (told(Stat(b"..", 0o644)), "invalid path"),
        (told(Stat(b".", MODE_DIRECTORY)), "invalid path"),
        (told(Stat(b"", 0o644)), "invalid path"),
        (told(Stat(b"/etc/x", 0o644)), "invalid path"),
        (told(Stat(b"a", MODE_DIRECTORY), Stat(b"a/..", 0o644)), "invalid path"),
        (told(Stat(b"a", MODE_DIRECTORY), Stat(b"a/", 0o644)), "invalid path"),
        (told(Stat(b"a", MODE_DIRECTORY), Stat(b"a//b", 0o644)), "invalid path"),
        (told(Stat(b"a", MODE_DIRECTORY), Stat(b"a/./b", 0o644)), "invalid path"),
        (told(Stat(b"a\0b", 0o644)), "invalid path"),
        (told(Stat(b"a", MODE_SYMLINK, link=b"x\0")), "invalid path"),
        (told(Stat(b"a" * 5000, 0o644)), "too long"),
        (told(Stat(b"b", 0o644), Stat(b"a", 0o644)), 'changes out of order: "a" "b"'),
        (told(Stat(b"a", 0o644), Stat(b"a", 0o644)), "changes out of order"),
        (told(Stat(b"a", 0o644), Stat(b"a/b", 0o644)), "in no directory"),
        (told(Stat(b"a/b", 0o644)), "in no directory"),
        (told(Stat(b"l", MODE_SYMLINK, link=b"/"), Stat(b"l/etc", 0o644)), "in no directory"),
        (told(Stat(b"a", 0o644, link=b"b")), "invalid link"),
        (told(Stat(b"a", 0o644, link=b"a")), "invalid link"),
        (packets.data_head(0, 1) + b"x", "invalid file request 0"),
        (told(Stat(b"a", 0o644, size=1)) + packets.data_head(1, 1) + b"x", "invalid file request 1"),
        (told(Stat(b"a", 0o644, size=1)) + packets.data_head(0, 0) * 2, "invalid file request 0"),
        (packets.end_of_stats() + told(Stat(b"a", 0o644)), "behind the end"),
        (packets.end_of_stats() * 2, "behind the end"),
        (packets.fin(), "before it was asked"),
        (packets.error("no such directory"), "error from sender: no such directory"),
        (packets.request(0), "unknown type 1"),
        (packets.frame(b"\x08\x09"), "unknown type 9"),
    ],
)
def test_refusals(said, reason):
    with pytest.raises(SyncError, match=reason):
        Receiver(Memory(), SyncTable()).feed(said)


def test_a_tree_that_holds_itself():
    receiver = Receiver(Memory(), SyncTable(), doubled("/srv/app/l/7"))
    receiver.feed(b"".join(told(Stat(path, MODE_DIRECTORY | 0o755)) for path in (b"l", b"l/7", b"l/7/l")))
    with pytest.raises(SyncError, match="holds the engine's own data root"):
        receiver.feed(told(Stat(b"l/7/l/7", MODE_DIRECTORY | 0o755)))


def test_a_file_whose_directory_went_cannot_stay():
    tree = Memory()
    table = sync(Client({b"a": None, b"a/b": b"x", b"c": b"y"}), tree, SyncTable())
    receiver = Receiver(tree, table)
    with pytest.raises(SyncError, match="in no directory"):
        receiver.feed(told(Stat(b"a/b", 0o644, size=1, mtime=1)))


def test_an_unchanged_file_cannot_come_twice():
    tree = Memory()
    table = sync(Client({b"a": b"x", b"c": b"y"}), tree, SyncTable())
    receiver = Receiver(tree, table)
    with pytest.raises(SyncError, match="out of order"):
        receiver.feed(told(Stat(b"a", 0o644, size=1, mtime=1)) * 2)


def test_a_sender_that_leaves_early():
    receiver = Receiver(Memory(), SyncTable())
    receiver.feed(told(Stat(b"a", 0o644, size=1)))
    with pytest.raises(SyncError, match="unexpected EOF"):
        receiver.close()


def test_a_file_that_is_shorter_than_it_was_told_is_asked_for_again():
    class Shrinking(Client):
        def open(self, stat):
            return iter(())

    tree = Memory()
    table = sync(Shrinking({b"a": b"12345"}), tree, SyncTable())
    assert contents(tree) == {b"a": b""}
    sync(Client({b"a": b"12345"}), tree, table)
    assert contents(tree) == {b"a": b"12345"}


@given(some.binary(max_size=400), some.integers(1, 50))
def test_whatever_comes_is_understood_or_refused(data, pieces):
    receiver = Receiver(Memory(), SyncTable())
    with contextlib.suppress(SyncError):
        for start in range(0, len(data), pieces):
            receiver.feed(data[start : start + pieces])
