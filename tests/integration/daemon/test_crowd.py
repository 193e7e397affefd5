"""Hundreds of clients at once: each gets in, however long the daemon is busy."""

import contextlib
import os
import signal
import socket

from tests.support.daemon import Daemon

CLIENTS = 500


def test_clients_wait_at_the_door_of_a_daemon_that_is_busy(fresh_daemon: Daemon):
    assert fresh_daemon.process is not None
    pid = fresh_daemon.process.pid
    with contextlib.ExitStack() as stack:
        os.kill(pid, signal.SIGSTOP)
        try:
            clients = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(CLIENTS)]
            for client in clients:
                client.setblocking(False)
                client.connect(str(fresh_daemon.socket_path))  # BlockingIOError where there is no room
                client.send(b"GET /_ping HTTP/1.0\r\n\r\n")
        finally:
            os.kill(pid, signal.SIGCONT)
        for client in clients:
            client.settimeout(60)
            assert client.recv(12).endswith(b" 200")
