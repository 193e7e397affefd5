"""Archives that clients send piece by piece: their sockets go to a worker, past the daemon's HTTP parser."""

import contextlib
import threading

import pytest

from tests.support.copying import put, where
from tests.support.daemon import Daemon
from tests.support.tars import file, tar
from tests.support.waiting import until
from tests.support.wire import RawClient

CHUNKED = {"Transfer-Encoding": "chunked", "Content-Type": "application/x-tar"}


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def content(daemon: Daemon, path: str) -> str:
    return daemon.docker("exec", "box", "cat", path).stdout


@pytest.fixture(autouse=True)
def box(daemon: Daemon) -> None:
    daemon.docker("run", "-d", "--name", "box", "busybox", "sleep", "1000")


def test_chunks_of_any_size_after_another_request(daemon: Daemon) -> None:
    archive = tar(file("new", b"hello" * 1000), file("large", b"x" * 3_000_000))
    with RawClient(daemon.raw(20)) as client:
        client.request("HEAD", where("box", "/tmp"))
        assert client.head().status == 200
        client.request("PUT", where("box", "/tmp"), headers=CHUNKED)
        position, size = 0, 1
        while position < len(archive):
            client.socket.sendall(chunk(archive[position : position + size]))
            position += size
            size = min(size * 3, 300_000)
        client.socket.sendall(b"0\r\n\r\n")
        head = client.head()
        assert head.status == 200 and head.headers["Connection"] == "close"
        assert client.read_to_end() == b""
    assert content(daemon, "/tmp/new") == "hello" * 1000
    assert daemon.docker(
        "exec", "box", "sh", "-c", "tr -d x </tmp/large | wc -c; wc -c </tmp/large"
    ).stdout.split() == [
        "0",
        "3000000",
    ]


def test_a_body_that_takes_its_time(daemon: Daemon) -> None:
    archive = tar(file("slow", b"slow"))
    with RawClient(daemon.raw(20)) as client:
        client.request("PUT", where("box", "/tmp"), headers=CHUNKED)
        for piece in (chunk(archive[:100]), chunk(archive[100:]), b"0\r\n\r\n"):
            until(lambda: client.unread() == 0, "the daemon has read what was sent, and waits for more")
            client.socket.sendall(piece)
        assert client.head().status == 200
    assert content(daemon, "/tmp/slow") == "slow"


@pytest.mark.parametrize(
    ("target", "status"),
    [(where("box", "/nosuch"), 404), (where("nosuch", "/tmp"), 404), (where("box", "/etc/passwd"), 400)],
)
def test_a_refusal_reaches_a_client_that_still_sends(daemon: Daemon, target: str, status: int) -> None:
    with RawClient(daemon.raw(20)) as client:
        client.request("PUT", target, headers=CHUNKED)

        def send() -> None:
            with contextlib.suppress(OSError):
                for _ in range(64):
                    client.socket.sendall(chunk(bytes(500_000)))
                client.socket.sendall(b"0\r\n\r\n")

        sender = threading.Thread(daemon=True, target=send)
        sender.start()
        try:
            head = client.head()
            assert head.status == status
        finally:
            client.socket.shutdown(2)
            sender.join()
    assert daemon.http("GET", "/_ping").status == 200


@pytest.mark.parametrize("body", [b"nonsense\r\n", b"5\r\nhelloXX\r\n", chunk(b"not a tar" * 100) + b"0\r\n\r\n"])
def test_nonsense_is_refused(daemon: Daemon, body: bytes) -> None:
    with RawClient(daemon.raw(20)) as client:
        client.request("PUT", where("box", "/tmp"), headers=CHUNKED)
        client.socket.sendall(body)
        head = client.head()
        assert head.status == 400 and head.headers["Connection"] == "close"
        assert b"message" in client.read_to_end()
    assert put(daemon, "box", "/tmp", tar(file("after", b"1"))).status == 200


def test_a_client_that_leaves_in_the_middle(daemon: Daemon) -> None:
    made = make_archive()
    with RawClient(daemon.raw(20)) as client:
        client.request("PUT", where("box", "/tmp"), headers=CHUNKED)
        client.socket.sendall(chunk(made[: len(made) // 2]))
        until(lambda: "half" in daemon.docker("exec", "box", "ls", "/tmp").stdout, "some of it is there")
    daemon.docker("rm", "-f", "box")
    daemon.check_no_litter()


def make_archive() -> bytes:
    return tar(file("half", b"1"), file("other", bytes(2_000_000)))


def test_an_empty_body(daemon: Daemon) -> None:
    with RawClient(daemon.raw(20)) as client:
        client.request("PUT", where("box", "/tmp"), headers=CHUNKED)
        client.socket.sendall(b"0\r\n\r\n")
        through_worker = client.head().status
    assert through_worker == 200
