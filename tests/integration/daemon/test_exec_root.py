"""The exec root may be as long as a path can be: sockets below it are reached all the same."""

import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.litter import Traces

# What conmon is given has 95 characters more for a container (107 is what a socket's address holds), 89 for an exec.
LENGTHS = (12, 18, 150)


@pytest.fixture(params=LENGTHS)
def daemon_below(request: pytest.FixtureRequest) -> Iterator[Daemon]:
    length: int = request.param
    root = Path("/tmp") / secrets.token_hex(3).ljust(length - len("/tmp/"), "x")
    assert len(str(root)) == length
    try:
        with Daemon(exec_root=root) as daemon:
            yield daemon
    finally:
        shutil.rmtree(root, ignore_errors=True)


def test_terminals_work_whatever_the_length_of_the_exec_root(daemon_below: Daemon):
    daemon = daemon_below
    daemon.docker("run", "-d", "-t", "--name", "box", "busybox", "sh", "-c", "tty; exec sleep 600")
    assert daemon.docker("exec", "-t", "box", "tty").stdout.startswith("/dev/pts/")
    assert daemon.docker("exec", "box", "echo", "hi").stdout == "hi\n"
    assert daemon.docker("run", "--rm", "busybox", "echo", "hi").stdout == "hi\n"
    daemon.docker("rm", "-f", "box")
    assert not Traces(daemon.config, daemon.config.exec_root).settle(daemon.pid)
