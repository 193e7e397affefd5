"""Containers that open as many connections as they can keep nobody from the daemon, and no other from its names."""

import contextlib
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from husk.network import dns
from tests.integration.networks.conftest import Network, inside
from tests.support.daemon import Daemon
from tests.support.free_ports import free_port

FILES = 512
CROWD = 300


@pytest.fixture
def narrow() -> Iterator[Network]:
    """A daemon that may open few files, so that a small crowd is one that could take them all."""
    with Daemon(wrapper=("prlimit", f"--nofile={FILES}:{FILES}")) as daemon:
        yield Network(daemon)


def crowd(namespace: Path | None, address: tuple[str, int], stack: contextlib.ExitStack) -> list[socket.socket]:
    """Many who connect and then say nothing."""

    def connect() -> list[socket.socket]:
        made = []
        for _ in range(CROWD):
            caller = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, socket.SOCK_STREAM)
            stack.enter_context(caller)
            caller.setblocking(False)
            caller.connect_ex(address)
            made.append(caller)
        return made

    return inside(namespace, connect)


def descriptors(daemon: Daemon) -> int:
    return len(list(Path(f"/proc/{daemon.pid}/fd").iterdir()))


def asked(namespace: Path, name: str) -> bytes:
    """Return the daemon's answer to a question over UDP."""

    def make() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.settimeout(5)
        made.connect(("127.0.0.11", 53))
        return made

    with inside(namespace, make) as channel:
        body = dns.encode_name(name) + struct.pack("!HH", dns.A, 1)
        channel.send(struct.pack("!HHHHHH", 7, 0x0100, 1, 0, 0, 0) + body)
        return channel.recv(1000)


def test_questions_over_tcp_leave_room_for_the_operator(narrow):
    narrow.create("crowded")
    names = ["one", "two", "three", "four"]
    for name in names:
        narrow.run(name, "--network", "crowded")
    with contextlib.ExitStack() as stack:
        for name in names[:3]:
            crowd(narrow.sandbox(name), ("127.0.0.11", 53), stack)
        for _ in range(20):
            assert narrow.daemon.docker("ps", "-q").stdout.count("\n") == 4
            assert descriptors(narrow.daemon) < FILES - 64
        assert asked(narrow.sandbox("four"), "one")[-4:] == socket.inet_aton(narrow.address("one", "crowded"))
        assert narrow.daemon.docker("run", "--rm", "--network", "crowded", "busybox", "echo", "hi").stdout == "hi\n"


def test_callers_of_published_ports_leave_room_for_the_operator(narrow):
    ports = [free_port() for _ in range(3)]
    for number, port in enumerate(ports):
        narrow.run(f"c{number}", "-p", f"[::1]:{port}:80")
    with contextlib.ExitStack() as stack:
        for number in range(3):

            def listen() -> socket.socket:
                made = socket.socket()
                made.bind(("", 80))
                made.listen(1000)
                return made

            stack.enter_context(inside(narrow.sandbox(f"c{number}"), listen))
        for port in ports[:2]:
            crowd(None, ("::1", port), stack)
        for _ in range(20):
            assert narrow.daemon.docker("ps", "-q").stdout.count("\n") == 3
            assert descriptors(narrow.daemon) < FILES - 64
        assert narrow.daemon.docker("run", "--rm", "busybox", "echo", "hi").stdout == "hi\n"
