"""The sending worker without a process of its own."""

import os

import pytest
from msgspec.structs import replace

from husk.builder.store.sync import packets, send
from husk.builder.store.workers.jobs import SendJob
from husk.storage.workers.answers import Failed, Invalid, Sent
from tests.unit.builder.store.sync.test_receive import Said


class Client(Said):
    @property
    def behind(self):
        return False

    def ready(self):
        return False


@pytest.fixture
def job(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"data")
    monkeypatch.chdir(tmp_path)
    return SendJob(str(tmp_path), "")


def test_files_that_are_asked_for_are_sent(job):
    client = Client(packets.request(0), packets.fin())
    assert send.send(job, client, os.chdir) == Sent(4)
    assert client.heard.endswith(packets.data_head(0, 4) + b"data" + packets.data_head(0, 0) + packets.fin())


def test_a_client_that_leaves(job):
    assert send.send(job, Client(), os.chdir) == Invalid("unexpected EOF")


def test_a_client_that_fails(job):
    assert send.send(job, Client(packets.error("disk full")), os.chdir) == Invalid("error from receiver: disk full")


def test_a_directory_that_is_not_there(job):
    said = send.send(replace(job, root="/nowhere/at/all"), Client())
    assert isinstance(said, Failed)
    assert said.message.startswith("no such file")
