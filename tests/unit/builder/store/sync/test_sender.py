"""Answers of a sender to hostile or clumsy receivers; a whole sync is in test_receiver."""

import pytest

from husk.builder.store.sync import packets
from husk.builder.store.sync.packets import HEAD_SIZE, MODE_DIRECTORY, Stat, SyncError
from husk.builder.store.sync.sender import Sender


class One:
    def walk(self):
        yield Stat(b"a", MODE_DIRECTORY | 0o755)
        yield Stat(b"a/b", 0o644, size=4)

    def open(self, stat):
        yield b"da"
        yield b"ta"


def told():
    sender = Sender(One())
    said = []
    while not sender.idle:
        said.append(packets.read_packet(sender.next()[HEAD_SIZE:]))
    return sender, said


def test_all_files_are_told_of_and_then_an_end():
    _, said = told()
    assert [packets.read_stat(packet.stat).path for packet in said[:-1]] == [b"a", b"a/b"]
    assert said[-1].stat is None


def test_what_is_asked_for_comes_with_its_number():
    sender, _ = told()
    sender.feed(packets.request(1))
    said = [packets.read_packet(sender.next()[HEAD_SIZE:]) for _ in range(3)]
    assert [(packet.id, bytes(packet.data)) for packet in said] == [(1, b"da"), (1, b"ta"), (1, b"")]
    assert sender.idle
    assert sender.sent == 4


def test_a_request_that_comes_in_two_pieces():
    sender, _ = told()
    sender.feed(packets.request(1)[:3])
    assert sender.idle
    sender.feed(packets.request(1)[3:])
    assert not sender.idle


@pytest.mark.parametrize("number", [0, 2])
def test_only_files_can_be_asked_for(number):
    sender, _ = told()
    with pytest.raises(SyncError, match=f"invalid file id {number}"):
        sender.feed(packets.request(number))


def test_a_file_can_be_asked_for_once():
    sender, _ = told()
    with pytest.raises(SyncError, match="invalid file id 1"):
        sender.feed(packets.request(1) * 2)


def test_the_end_is_confirmed():
    sender, _ = told()
    sender.feed(packets.fin())
    assert sender.next() == packets.fin()
    assert sender.ended


def test_an_error_of_the_receiver():
    with pytest.raises(SyncError, match="error from receiver: disk full"):
        Sender(One()).feed(packets.error("disk full"))


def test_a_receiver_sends_no_data():
    with pytest.raises(SyncError, match="unexpected type 2"):
        Sender(One()).feed(packets.data_head(0, 0))
