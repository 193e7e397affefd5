"""Leases of a real etcd: renewed while it is killed, lost by our own clock when it is gone."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from husk.config.etcd_address import read_address
from husk.swarm.state.etcd.channel import EtcdChannel
from husk.swarm.state.etcd.messages import REVOKE, LeaseRequest
from husk.swarm.state.etcd.store import EtcdStore
from husk.swarm.state.transactions import NEW, Put
from tests.support.etcd import Etcd
from tests.support.store_contract import body, reading
from tests.support.waiting import until_async


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Etcd]:
    with Etcd(tmp_path / "three", members=3) as etcd:
        yield etcd


async def test_a_lease_outlives_the_member_that_it_was_renewed_with(three: Etcd):
    store = EtcdStore.open(three.address, patience=60)
    kept, left = await store.lease(10), await store.lease(10)
    for key, lease in (("kept", kept), ("left", left)):
        await store.commit(Put("node", key, body("1"), lease=lease.id))
    left.abandon()
    three.members[0].kill()
    async with reading(store.watch("node")) as reader:
        await until_async(lambda: reader.knows(kept="1"), "the end of the one that nobody keeps")
    assert not kept.lost
    await store.close()


async def test_a_lease_that_is_abandoned_outlives_the_store(three: Etcd):
    """A node that starts again at once was never away."""
    store, other = EtcdStore.open(three.address, patience=60), EtcdStore.open(three.address, patience=60)
    lease = await store.lease(30)
    await store.commit(Put("alive", "n", body("1"), lease=lease.id))
    lease.abandon()
    await store.close()
    assert await other.get("alive", "n") is not None
    await other.close()


async def test_a_lease_is_lost_by_our_own_clock_when_nobody_answers(three: Etcd):
    store = EtcdStore.open(three.address, patience=1)
    lease = await store.lease(3)
    for member in three.members:
        member.kill()
    await asyncio.wait_for(lease.wait_lost(), 60)
    assert lease.lost
    await lease.close()
    await store.close()


async def test_a_lease_that_etcd_has_ended_is_lost(three: Etcd):
    store, other = EtcdStore.open(three.address, patience=60), EtcdStore.open(three.address, patience=60)
    lease = await store.lease(3)
    await store.commit(Put("leader", "planner", body("me"), NEW, lease.id))
    # Somebody else ends it, as `etcdctl lease revoke` does.
    channel = EtcdChannel(read_address(three.address), None)
    await channel.unary(REVOKE, LeaseRequest(id=lease.id).encode())
    await channel.close()
    await asyncio.wait_for(lease.wait_lost(), 60)
    assert await other.get("leader", "planner") is None
    for one in (store, other):
        await one.close()
