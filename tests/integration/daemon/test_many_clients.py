"""Hundreds of clients at once: all get in, and those that stand still cost little."""

import contextlib
import fcntl
import os
import signal
import socket
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.waiting import until

FOLLOWERS = 200


def resident(pid: int) -> int:
    """Bytes of memory that a process has."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def clients(daemon: Daemon, count: int) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(count):
            client = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            client.setblocking(False)
            client.connect(str(daemon.socket_path))
            found.append(client)
        yield found


def test_hundreds_that_come_while_the_daemon_is_busy_all_get_in(daemon: Daemon) -> None:
    os.kill(daemon.pid, signal.SIGSTOP)
    try:
        with clients(daemon, 600) as found:
            for client in found:
                client.sendall(b"GET /_ping HTTP/1.1\r\nHost: docker\r\n\r\n")
            os.kill(daemon.pid, signal.SIGCONT)
            for client in found:
                client.settimeout(60)
                assert client.recv(100).startswith(b"HTTP/1.1 200 ")
    finally:
        os.kill(daemon.pid, signal.SIGCONT)


@pytest.mark.parametrize("line", [20, 1000])
def test_followers_that_do_not_read_cost_little_and_delay_nobody(daemon: Daemon, line: int) -> None:
    text = "x" * line
    script = f"i=0; while [ $i -lt {4_000_000 // (line + 60)} ]; do echo {text}; i=$((i+1)); done; sleep 600"
    daemon.docker("run", "-d", "--name", "talker", "--network", "none", "busybox", "sh", "-c", script)
    until(lambda: "sleep" in daemon.docker("top", "talker").stdout, "everything is said", deadline=120)
    request = b"GET /containers/talker/logs?stdout=1&follow=1 HTTP/1.1\r\nHost: docker\r\n\r\n"
    with clients(daemon, 3) as first:
        # What the daemon needs for the first is no part of what one more costs.
        for client in first:
            client.sendall(request)
        until(lambda: all(_stands_still(client) for client in first), "the first are served")
        before = resident(daemon.pid)
        with clients(daemon, FOLLOWERS) as found:
            for client in found:
                client.sendall(request)
            for _ in range(20):
                assert daemon.http("GET", "/_ping").status == 200
            until(lambda: all(_stands_still(client) for client in found), "all are served", deadline=120)
            assert daemon.http("GET", "/containers/talker/json").json()["State"]["Running"]
            cost = (resident(daemon.pid) - before) / FOLLOWERS
            assert cost < 200 << 10, f"{cost / 1024:.0f} KiB each"
    daemon.docker("rm", "-f", "talker")
    assert daemon.http("GET", "/_ping").status == 200


def _stands_still(client: socket.socket) -> bool:
    """Tell if as much has come as the kernel takes for it, which is less than all."""
    unread = fcntl.ioctl(client.fileno(), termios.FIONREAD, bytes(4))
    return int.from_bytes(unread, sys.byteorder) > 64 << 10
