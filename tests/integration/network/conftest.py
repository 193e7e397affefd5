"""A host of its own for every test: a network namespace in which bridges, rules and forwarding disturb nobody.

The namespace ends with the test and takes every interface and table in it along.
"""

import ctypes
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from husk.kernel import namespaces, rtaddresses, rtnetlink
from husk.kernel.mount import mounts_below
from husk.kernel.netlink import NetlinkSocket
from husk.network.settings import BridgeSettings
from tests.support.bridges import HOST_OUTSIDE, OUTSIDE, TABLE

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


@pytest.fixture
def settings(tmp_path: Path) -> BridgeSettings:
    return BridgeSettings("hk-test-0", TABLE, tmp_path / "netns", warm=0)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A machine beyond the host that knows the host and no container."""
    path = tmp_path / "outside"
    with NetlinkSocket() as host:

        def connect(namespace: int) -> None:
            host.execute(rtnetlink.add_veth("uplink", "eth0", peer_namespace=namespace, mtu=1400))
            with NetlinkSocket() as inside:
                inside.execute(
                    rtaddresses.add_address(socket.if_nametoindex("eth0"), OUTSIDE), rtnetlink.set_up("eth0")
                )

        namespaces.create(path, connect)
        host.execute(rtaddresses.add_address(socket.if_nametoindex("uplink"), HOST_OUTSIDE), rtnetlink.set_up("uplink"))
    return path
