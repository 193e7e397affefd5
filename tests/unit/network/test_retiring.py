"""Sandboxes that go: the kernel is waited for, and not for ever. The kernel is a double."""

import pytest

from husk.network import retiring, sandbox
from husk.network.sandbox import Lease

LEASES = [Lease(f"/netns/{n}", f"veth{n}", f"10.0.0.{n}", 24, "", "") for n in range(3)]


@pytest.fixture
def polls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The interfaces that were asked for."""
    seen: list[str] = []
    monkeypatch.setattr(retiring, "INTERVAL", 0)
    monkeypatch.setattr(sandbox, "abandon_all", lambda paths: None)
    return seen


async def test_all_are_gone_at_once(polls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "connected", lambda lease: polls.append(lease.host_interface))
    assert await retiring.abandon(LEASES) == []
    assert polls == ["veth2", "veth1", "veth0"]


async def test_what_lingers_is_told(
    polls: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(paths: list[str]) -> None:
        raise OSError("busy")

    def connected(lease: Lease) -> bool:
        polls.append(lease.host_interface)
        return lease.host_interface == "veth1"

    monkeypatch.setattr(sandbox, "abandon_all", refuse)
    monkeypatch.setattr(sandbox, "connected", connected)
    assert await retiring.abandon(LEASES) == LEASES[:2]
    assert polls.count("veth1") == retiring.POLLS and "busy" in caplog.text
