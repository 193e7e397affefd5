"""Files that leave a container: names in archives, and files that go while they are packed."""

import io
import os
import socket
import threading
from io import FileIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.storage.tar.members import TarWriter, tar_to
from husk.storage.workers import pack as module
from husk.storage.workers.body import BodyReader, BodyUpload
from husk.storage.workers.pack import XATTRS, Outlet, add_all, base_name, describe, source
from tests.support.tars import files_of


@pytest.mark.parametrize(
    ("path", "name"), [("/a/b", "b"), ("/a/b/", "b"), ("/a/.", "."), ("/", "/"), ("//", "/"), ("a", "a")]
)
def test_the_last_element_of_a_path(path, name):
    assert base_name(path) == name


@pytest.mark.parametrize(
    ("path", "directory", "expected"),
    [
        ("/a/b", True, ("/a/b", "b")),
        ("/a/b/", True, ("/a/b/", "b")),
        ("/a/b/", False, ("/a/b", "b")),
        ("/a/b/.", True, ("/a/b/.", ".")),
        ("/", True, ("/", "")),
    ],
)
def test_what_is_walked_and_how_it_is_named(path, directory, expected):
    assert source(path, directory) == expected


def test_links_are_told_where_they_lead(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "dangling").symlink_to("nowhere")
    assert describe(str(tmp_path / "link")).link == str(tmp_path / "file")
    assert describe(str(tmp_path / "dangling")).link == str(tmp_path / "nowhere")
    assert describe(str(tmp_path / "file")).link == ""


def test_a_directory_that_goes_between_the_look_and_the_walk(tmp_path, monkeypatch):
    top = tmp_path / "etc"
    top.mkdir()
    add = TarWriter.add

    def add_and_remove(self, name, path, status):
        add(self, name, path, status)
        os.rmdir(top)

    monkeypatch.setattr(TarWriter, "add", add_and_remove)
    out = io.BytesIO()
    with tar_to(out, XATTRS) as members:
        add_all(members, str(top), "etc")
    assert files_of(out.getvalue()) == {}


class Client:
    """The other end: reads slowly enough that the socket is full at times."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair()
        self._ours.setblocking(False)
        self.outlet = Outlet(self._ours.fileno())
        self._received = b""
        self._reader = threading.Thread(daemon=True, target=self._read, args=[theirs])
        self._reader.start()

    def _read(self, end: socket.socket) -> None:
        with end:
            while data := end.recv(5000):
                self._received += data

    def body(self) -> bytes:
        """All of it, when nothing more comes."""
        self._ours.setblocking(True)
        self._ours.sendall(b"0\r\n\r\n")
        self._ours.close()
        self._reader.join()
        body, found = BodyReader(BodyUpload(-1, self._received, None)), b""
        buffer = memoryview(bytearray(1 << 16))
        while count := body.readinto(buffer):
            found += buffer[:count]
        return found


@given(st.lists(st.one_of(st.binary(max_size=3000), st.integers(0, 400_000)), max_size=8))
def test_pieces_and_files_in_turn(parts: list[bytes | int]) -> None:
    client, sent = Client(), b""
    for part in parts:
        if isinstance(part, bytes):
            client.outlet.write(part)
            sent += part
        else:
            client.outlet.flush()
            with memory_file(content := os.urandom(part)) as file:
                assert client.outlet.hand_over(file.fileno(), part) == part
            sent += content
    client.outlet.flush()
    assert client.body() == sent


def memory_file(content: bytes) -> FileIO:
    file = FileIO(os.memfd_create("content"), "r+")
    file.write(content)
    file.seek(0)
    return file


def test_large_pieces_do_not_wait_for_a_flush() -> None:
    client = Client()
    data = os.urandom(3 << 20)
    client.outlet.write(data)
    assert client.body() == data


def test_what_a_file_lacks_is_zeros() -> None:
    client = Client()
    with memory_file(b"short") as file:
        client.outlet.hand_over(file.fileno(), 300_000)
    assert client.body() == b"short" + bytes(300_000 - 5)


def test_a_file_of_several_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LARGEST_CHUNK", 1000)
    client, data = Client(), os.urandom(4321)
    with memory_file(data) as file:
        client.outlet.hand_over(file.fileno(), len(data))
    assert client.body() == data


def test_a_file_whose_pages_cannot_be_handed_over_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*arguments: object) -> int:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "sendfile", refuse)
    client, data = Client(), os.urandom(2 << 20)
    (tmp_path / "file").write_bytes(data)
    with (tmp_path / "file").open("rb", buffering=0) as file:
        client.outlet.hand_over(file.fileno(), len(data))
    assert client.body() == data
