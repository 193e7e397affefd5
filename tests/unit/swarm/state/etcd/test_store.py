"""Moments when a lease is renewed; leases of a real etcd are in tests/integration/swarm/state/etcd/test_lease.py."""

import asyncio
from unittest.mock import Mock

import pytest

from husk.swarm.state.etcd.store import EtcdLease, pause


@pytest.mark.parametrize(
    ("left", "wanted"),
    [(15.0, 5.0), (10.0, 5.0), (4.0, 2.0), (0.1, 0.1), (-3.0, 0.1)],
    ids=["granted at once", "as usual", "an answer that came late", "hardly in time", "too late"],
)
def test_a_lease_is_renewed_before_it_is_over(left: float, wanted: float) -> None:
    assert pause(15.0, left) == wanted


async def test_whether_it_is_lost_can_be_asked_in_a_thread() -> None:
    now = asyncio.get_running_loop().time()
    lease, late = (EtcdLease(Mock(), 7, 60.0, asked, Mock()) for asked in (now, now - 61))
    try:
        assert not await asyncio.to_thread(lambda: lease.lost)
        assert await asyncio.to_thread(lambda: late.lost)
    finally:
        lease.abandon()
        late.abandon()
