"""Archives that clients fetch: a worker sends them to the client's socket, between head and end of the answer."""

import io
import os
import signal
import tarfile

import pytest

from tests.support.copying import where
from tests.support.daemon import Daemon
from tests.support.waiting import until
from tests.support.wire import RawClient
from tests.support.workers import workers_of

LARGE = 30_000_000
SCRIPT = f"mkdir /d; echo small >/d/small; head -c {LARGE} /dev/zero | tr '\\0' x >/d/large; sleep 1000"


@pytest.fixture(autouse=True)
def box(daemon: Daemon) -> None:
    daemon.docker("run", "-d", "--name", "box", "busybox", "sh", "-c", SCRIPT)
    size = ["exec", "box", "sh", "-c", "[ ! -e /d/large ] || stat -c %s /d/large"]
    until(lambda: daemon.docker(*size).stdout == f"{LARGE}\n", "the files are there")


def chunks(client: RawClient) -> bytes:
    """The body of an answer in chunks, to its end."""
    body = b""
    while size := int(client.read_until(b"\r\n"), 16):
        body += client.read_exactly(size)
        assert client.read_exactly(2) == b"\r\n"
    assert client.read_exactly(2) == b"\r\n"
    return body


def sizes(archive: bytes) -> dict[str, int]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {member.name: member.size for member in tar if member.isreg()}


def test_one_connection_serves_archives_and_other_requests_in_turn(daemon: Daemon) -> None:
    with RawClient(daemon.raw(20)) as client:
        for _ in range(3):
            client.request("GET", where("box", "/d"))
            head = client.head()
            assert (head.status, head.headers["Transfer-Encoding"]) == (200, "chunked")
            assert sizes(chunks(client)) == {"d/small": 6, "d/large": LARGE}
            client.request("GET", "/_ping")
            assert client.head().status == 200
            assert client.read_exactly(2) == b"OK"


def test_a_client_that_knows_no_chunks_gets_none(daemon: Daemon) -> None:
    with RawClient(daemon.raw(20)) as client:
        client.socket.sendall(f"GET {where('box', '/d')} HTTP/1.0\r\n\r\n".encode())
        head = client.head()
        assert head.status == 200 and "Transfer-Encoding" not in head.headers
        assert sizes(client.read_to_end()) == {"d/small": 6, "d/large": LARGE}


def test_a_worker_that_dies_on_the_way_does_not_look_like_an_end(daemon: Daemon) -> None:
    with RawClient(daemon.raw(20)) as client:
        client.request("GET", where("box", "/d/large"))
        assert client.head().status == 200
        [worker] = workers_of(daemon.pid)
        os.kill(worker, signal.SIGKILL)
        rest = client.read_to_end()
        assert len(rest) < LARGE and not rest.endswith(b"0\r\n\r\n")
    assert "broke off" in daemon.log()
    daemon.docker("cp", "box:/d/small", "-")


def test_no_worker_stays_for_a_client_that_has_left(daemon: Daemon) -> None:
    with RawClient(daemon.raw(20)) as client:
        client.request("GET", where("box", "/d/large"))
        assert client.head().status == 200
        assert workers_of(daemon.pid)
    until(lambda: not workers_of(daemon.pid), "its worker is gone")


def test_a_file_that_shrinks_on_the_way_keeps_its_promised_size(daemon: Daemon) -> None:
    with RawClient(daemon.raw(20)) as client:
        client.request("GET", where("box", "/d/large"))
        assert client.head().status == 200
        daemon.docker("exec", "box", "sh", "-c", ">/d/large")
        assert sizes(chunks(client)) == {"large": LARGE}
