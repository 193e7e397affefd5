"""The receiving worker without a process of its own: answers."""

import os

import pytest
from msgspec.structs import replace

from husk.builder.store.sync import packets, receive
from husk.builder.store.sync.lines import ClientLines
from husk.builder.store.sync.pack_ahead import PackAhead
from husk.builder.store.sync.packets import Stat
from husk.builder.store.workers.jobs import ReceiveJob
from husk.storage.workers.answers import Failed, Invalid, Received


class Said(ClientLines):
    """A client's words, piece by piece; `heard` is what was sent to it."""

    def __init__(self, *pieces):
        self.pieces = list(pieces)
        self.heard = b""

    def read(self):
        return self.pieces.pop(0) if self.pieces else b""

    def write(self, output):
        self.heard += bytes(output)
        output.clear()

    def drain(self):
        pass


def received(job, client):
    with PackAhead(job.ahead) as ahead:
        return receive.receive(job, client, ahead, os.chdir)


@pytest.fixture
def job(tmp_path, monkeypatch):
    (tmp_path / "root").mkdir()
    monkeypatch.chdir(tmp_path)
    return ReceiveJob(str(tmp_path / "root"), "", str(tmp_path / "new"))


def test_a_sync_ends_with_a_table(job):
    told = packets.stat(Stat(b"a", 0o644, size=2)) + packets.end_of_stats()
    client = Said(told, packets.data_head(0, 2) + b"hi", packets.data_head(0, 0), packets.fin())
    assert received(job, client) == Received(1, 2, 2)
    assert client.heard == packets.request(0) + packets.fin()
    again = replace(job, old=job.new, new=job.new + "er")
    assert received(again, Said(told, packets.fin())) == Received(1, 2, 0)
    assert not os.path.exists(job.new)


def test_a_client_that_is_wrong_is_told(job):
    client = Said(packets.fin())
    assert received(job, client) == Invalid("the sender ended before it was asked to")
    assert client.heard == packets.error("the sender ended before it was asked to")


def test_a_host_that_fails(job):
    said = received(replace(job, root="/nowhere/at/all"), Said())
    assert isinstance(said, Failed)
    assert said.message.startswith("no such file")


def test_a_table_that_is_none(job, tmp_path):
    (tmp_path / "old").write_bytes(b"garbage\n")
    said = received(replace(job, old=str(tmp_path / "old")), Said())
    assert isinstance(said, Failed)
    assert "no table" in said.message
