"""Interfaces of sandboxes as ports of a bridge, with a double of the kernel."""

import errno
from typing import Any

import pytest

from husk.kernel.rtnetlink import Link
from husk.network import hardening
from husk.network.sandbox import Lease, reattach


class Kernel:
    """Has no device that is asked for."""

    def __init__(self):
        self.asked = []

    def execute(self, *messages):
        self.asked += messages
        raise OSError(errno.ENODEV, "No such device")


def lease(name):
    return Lease("/run/x", name, "10.0.0.2", 24, "10.0.0.1", "02:42:0a:00:00:02")


def link(name):
    return Link(7, name, "veth", 0, True, 1500, "")


@pytest.fixture(autouse=True)
def kernel_has_lo_alone(monkeypatch):
    monkeypatch.setattr("husk.network.sandbox.socket.if_nameindex", lambda: [(1, "lo")])
    monkeypatch.setattr(hardening, "port", lambda name: None)


def test_an_interface_that_goes_meanwhile_is_left_out():
    kernel: Any = Kernel()
    reattach(kernel, {"gone": link("gone")}, 3, [lease("gone")], False, (4,))
    assert len(kernel.asked) == 1


def test_any_other_fault_is_told():
    kernel: Any = Kernel()
    with pytest.raises(OSError, match="No such device"):
        reattach(kernel, {"lo": link("lo")}, 3, [lease("lo")], False, (4,))


def test_what_was_not_there_is_not_asked_for():
    kernel: Any = Kernel()
    reattach(kernel, {}, 3, [lease("gone")], False, (4,))
    assert kernel.asked == []
