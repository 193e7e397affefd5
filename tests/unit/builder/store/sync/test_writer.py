"""The tree that is written; hostile clients and all kinds of files are in the integration tests."""

import os
import stat

import pytest

from husk.builder.store.sync import packets
from husk.builder.store.sync.packets import MODE_DIRECTORY, Stat, SyncError
from husk.builder.store.sync.writer import TreeWriter
from husk.builder.store.sync_table import content_hash


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tree(**sizes):
    return TreeWriter(lambda name: False, **sizes)


def entry(path, **fields):
    return Stat(path, 0o644, os.geteuid(), os.getegid(), **fields)


def test_a_file_is_made_when_all_of_it_is_here(here):
    made = tree()
    made.expect(3, entry(b"file", mtime=5))
    assert made.data(3, memoryview(b"con")) is None
    assert made.data(3, memoryview(b"tent")) is None
    assert not (here / "file").exists()
    assert made.data(3, memoryview(b"")) == 7
    assert (here / "file").read_bytes() == b"content"
    assert os.stat("file").st_mtime_ns == 5
    assert made.digest(3) == content_hash(b"content").digest()


def test_large_files_and_many_waiting_ones_go_to_the_disk_early(here):
    made = tree(small=8, most_waiting=20)
    for number in range(5):
        made.expect(number, entry(b"%d" % number))
        made.data(number, memoryview(b"123456"))
    assert (here / "0").read_bytes() == b"123456"
    made.data(4, memoryview(b"7890123456"))
    assert (here / "4").read_bytes() == b"1234567890123456"
    for number in range(5):
        made.data(number, memoryview(b""))
    assert (here / "3").read_bytes() == b"123456"
    assert made.digest(4) == content_hash(b"1234567890123456").digest()


def test_data_in_very_many_pieces(here):
    made = tree()
    made.expect(0, entry(b"file"))
    for _ in range(3000):
        made.data(0, memoryview(b"x"))
    assert made.data(0, memoryview(b"")) == 3000
    assert (here / "file").read_bytes() == b"x" * 3000


def test_nothing_that_is_there_is_written_to(here):
    (here / "file").write_bytes(b"old")
    made = tree()
    made.expect(0, entry(b"file"))
    with pytest.raises(FileExistsError):
        made.data(0, memoryview(b""))


def test_directories_keep_their_times(here):
    made = tree()
    made.directory(Stat(b"d", MODE_DIRECTORY | 0o750, os.geteuid(), os.getegid(), mtime=11), new=True)
    made.expect(0, entry(b"d/file"))
    made.data(0, memoryview(b""))
    made.finish([entry(b"d/link", link=b"d/file")])
    assert os.stat("d").st_mtime_ns == 11
    assert stat.S_IMODE(os.stat("d").st_mode) == 0o750
    assert os.path.samefile("d/link", "d/file")
    again = tree()
    again.remove([b"d/file"])
    again.finish([])
    assert os.stat("d").st_mtime_ns == 11
    again.remove([b"d", b"d/link"])
    assert os.listdir(here) == []


@pytest.mark.parametrize("target", [b"missing", b"d", b"d/x/y"])
def test_a_hard_link_needs_a_file(here, target):
    (here / "d").mkdir()
    with pytest.raises(SyncError, match="invalid link"):
        tree().finish([entry(b"x", link=target)])


def test_a_symbolic_link_needs_a_target(here):
    with pytest.raises(SyncError, match="nowhere"):
        tree().special(Stat(b"x", packets.MODE_SYMLINK))


def test_what_is_told_may_be_overwritten_afterwards(here):
    """Data is a view of what was received: nothing of it is kept, of small files nor of large ones."""
    made = tree(small=8)
    for number, name in enumerate((b"small", b"large")):
        made.expect(number, entry(name))
    received = bytearray(b"123456")
    for number in (0, 1, 1, 1):
        made.data(number, memoryview(received))
    received[:] = b"xxxxxx"
    assert (made.data(0, memoryview(b"")), made.data(1, memoryview(b""))) == (6, 18)
    assert (here / "small").read_bytes() == b"123456"
    assert (here / "large").read_bytes() == b"123456" * 3
    assert made.digest(1) == content_hash(b"123456" * 3).digest()
