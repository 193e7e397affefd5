"""A daemon with many open files still writes its rules."""

import os
import resource
import socket

import pytest

from husk.errors import SystemFault
from husk.kernel.nftables import Nftables


@pytest.fixture
def many_open():
    """More descriptors than select() knows."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] < 2048:
        pytest.skip("the hard limit of open files is too low here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    taken = [os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC) for _ in range(1100)]
    yield
    for descriptor in taken:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_rules_are_written_with_more_than_1024_open_files(many_open):
    nftables = Nftables()
    nftables.run("add table ip husk-test\n")
    assert "husk-test" in nftables.run("list tables\n")


def test_the_calls_leave_this_threads_descriptors_alone():
    near, far = socket.socketpair()
    with near, far:
        for _ in range(20):
            with pytest.raises(SystemFault, match="nftables"):
                Nftables().run("add rule ip nowhere nothing accept\n")
        near.send(b"x")
        assert far.recv(1) == b"x"
