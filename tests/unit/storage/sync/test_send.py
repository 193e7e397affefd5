"""The sending worker without a process of its own."""

import os

import pytest

from husk.storage.sync import packets, send
from tests.unit.storage.sync.test_receive import Said


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
    monkeypatch.setattr(send, "confine", lambda root, binds: os.chdir(root))
    return {"root": str(tmp_path), "prefix": "", "mtime": None}


def test_files_that_are_asked_for_are_sent(job):
    client = Client(packets.request(0), packets.fin())
    assert send.send(job, client) == "ok 4"
    assert client.heard.endswith(packets.data_head(0, 4) + b"data" + packets.data_head(0, 0) + packets.fin())


def test_a_client_that_leaves(job):
    assert send.send(job, Client()) == "invalid unexpected EOF"


def test_a_client_that_fails(job):
    assert send.send(job, Client(packets.error("disk full"))) == "invalid error from receiver: disk full"


def test_a_directory_that_is_not_there(job):
    assert send.send(job | {"root": "/nowhere/at/all"}, Client()).startswith("system no such file")
