"""Bytes that no client sends, and clients that leave: none of them costs the daemon anything."""

import contextlib
import os
import socket
import threading

import pytest

from tests.support.daemon import Daemon
from tests.support.waiting import until
from tests.support.wire import RawClient

HOSTILE = [
    b"garbage\r\n\r\n",
    b"\x00\xff\xfe\x16\x03\x01\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),  # a TLS client
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET /_ping HTTP/1.1\r\nHost: x\r\nBad Header: x\r\n\r\n",
    b"GET /_ping HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n",
    b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /_ping HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 2_000_000 + b"\r\n\r\n",
    b"GET /_ping HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(50_000)) + b"\r\n",
    b"POST /containers/create HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: -5\r\n\r\n{}",
    b"POST /containers/create HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
    b"POST /containers/create HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    b"POST /containers/create HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    b"",
]


@pytest.mark.parametrize("data", HOSTILE, ids=lambda data: repr(data[:24]))
def test_hostile_bytes_do_not_kill_the_daemon(daemon: Daemon, data: bytes):
    with RawClient(daemon.raw(10)) as client, contextlib.suppress(BrokenPipeError, ConnectionResetError):
        client.socket.sendall(data)
        client.half_close()
        answer = client.read_to_end()
        assert not answer or answer.split()[1] in (b"400", b"404", b"405", b"413", b"414", b"431", b"505"), answer[:300]
    assert daemon.http("GET", "/_ping").body == b"OK"


def test_a_huge_body_is_refused(daemon: Daemon):
    with RawClient(daemon.raw(20)) as client:
        head = b"POST /containers/create HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        head += b"Content-Length: 100000000\r\n\r\n"
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            client.socket.sendall(head + b" " * 100_000_000)
        with contextlib.suppress(ConnectionResetError):
            assert client.head().status in (400, 413)
    assert daemon.http("GET", "/_ping").body == b"OK"


def test_half_a_request_holds_nobody_up(daemon: Daemon):
    clients = [RawClient(daemon.raw()) for _ in range(50)]
    for client in clients:
        client.socket.sendall(b"POST /containers/create HTTP/1.1\r\nHost:")
    assert daemon.http("GET", "/_ping").body == b"OK"
    for client in clients:
        client.close()


def test_several_requests_on_one_connection(daemon: Daemon):
    with RawClient(daemon.raw()) as client:
        client.socket.sendall(b"GET /_ping HTTP/1.1\r\nHost: x\r\n\r\n" * 3)
        for _ in range(3):
            assert client.head().status == 200
            assert client.read_until(b"OK") == b"OK"


def test_clients_that_leave_leave_no_descriptor(daemon: Daemon):
    def descriptors() -> int:
        return len(os.listdir(f"/proc/{daemon.pid}/fd"))

    daemon.http("GET", "/_ping")
    before = descriptors()
    container = daemon.http("POST", "/containers/create", {"Image": "busybox", "Cmd": ["sleep", "1000"]}).json()["Id"]
    for path in (
        f"/containers/{container}/wait?condition=next-exit",
        f"/containers/{container}/attach?stream=1&stdout=1",
    ):
        for _ in range(10):
            with RawClient(daemon.raw()) as client:
                client.request("POST", path)
                client.head()
    for _ in range(10):
        with RawClient(daemon.raw()) as client:
            client.request("GET", "/events")
            client.head()
    until(lambda: descriptors() <= before + 1, "all descriptors are closed")


def test_a_crowd_of_clients(daemon: Daemon):
    wrong: list[int] = []

    def ask() -> None:
        for _ in range(20):
            if (status := daemon.http("GET", "/containers/json?all=1").status) != 200:
                wrong.append(status)

    threads = [threading.Thread(daemon=True, target=ask) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_socket_is_not_for_everybody(daemon: Daemon):
    assert daemon.socket_path.stat().st_mode & 0o777 == 0o660
    assert isinstance(daemon.raw(), socket.socket)
