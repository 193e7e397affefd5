"""A host of its own for every test: a network namespace in which bridges, rules and forwarding disturb nobody.

The namespace ends with the test and takes every interface and table in it along.
"""

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from husk.kernel import namespaces, rtnetlink
from husk.kernel.mount import mounts_below
from husk.kernel.netlink import NetlinkSocket

_CLONE_NEWNET = 0x40000000


@pytest.fixture(autouse=True)
def host(tmp_path: Path) -> Iterator[None]:
    """Move this thread, and every thread it starts, to a fresh network namespace."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    libc = ctypes.CDLL(None, use_errno=True)
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        assert libc.unshare(_CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        with NetlinkSocket() as netlink:
            netlink.execute(rtnetlink.set_up("lo"))
        yield
    finally:
        for path in mounts_below(str(tmp_path)):
            namespaces.remove(Path(path))
        assert libc.setns(home, _CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        os.close(home)
