"""Sandboxes that go: the kernel is waited for, and not for ever. The kernel is a double."""

import pytest

from husk.network import retiring
from husk.network.sandbox import Lease

LEASES = [Lease(f"/netns/{n}", f"veth{n}", f"10.0.0.{n}", 24, "", "") for n in range(3)]


async def test_all_are_gone_at_once() -> None:
    polls: list[str] = []

    def connected(lease: Lease) -> bool:
        polls.append(lease.host_interface)
        return False

    assert await retiring.abandon(LEASES, lambda paths: None, connected) == []
    assert polls == ["veth2", "veth1", "veth0"]


async def test_what_lingers_is_told(caplog: pytest.LogCaptureFixture) -> None:
    polls: list[str] = []

    def refuse(paths: list[str]) -> None:
        raise OSError("busy")

    def connected(lease: Lease) -> bool:
        polls.append(lease.host_interface)
        return lease.host_interface == "veth1"

    assert await retiring.abandon(LEASES, refuse, connected, interval=0) == LEASES[:2]
    assert polls.count("veth1") == retiring.POLLS and "busy" in caplog.text
