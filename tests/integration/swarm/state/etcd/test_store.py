"""Records in a real etcd: the contract of all stores, and what happens when members and connections end."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from husk.errors import InvalidParameter
from husk.swarm.state.cluster_store import ClusterStore
from husk.swarm.state.etcd.certificates import CertificateFiles
from husk.swarm.state.etcd.store import EtcdStore
from husk.swarm.state.transactions import NEW, Delete, Put, Stale, StoreUnavailable
from tests.support.etcd import Etcd
from tests.support.store_contract import StoreContract, body, text_of


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Etcd]:
    """With TLS, as a swarm has it."""
    with Etcd(tmp_path_factory.mktemp("etcd"), tls=True) as etcd:
        yield etcd


@pytest.fixture(scope="module")
def certificates(shared: Etcd) -> CertificateFiles:
    pair = shared.client_certificate("manager")
    return CertificateFiles(Path(pair.ca), Path(pair.cert), Path(pair.key))


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Etcd]:
    with Etcd(tmp_path / "three", members=3) as etcd:
        yield etcd


class TestContract(StoreContract):
    @pytest.fixture
    async def store(self, shared: Etcd, certificates: CertificateFiles) -> AsyncIterator[ClusterStore]:
        store = EtcdStore.open(shared.address, certificates)
        everything = (await store.listing("")).records
        for start in range(0, len(everything), 100):
            await store.commit(*(Delete(r.kind, r.key) for r in everything[start : start + 100]))
        yield store
        await store.close()


async def test_two_managers_see_each_others_changes(shared: Etcd, certificates: CertificateFiles):
    one, two = EtcdStore.open(shared.address, certificates), EtcdStore.open(shared.address, certificates)
    version = await one.commit(Put("shared", "a", body("1")))
    found = await two.get("shared", "a")
    assert found is not None and found.version == version
    await two.commit(Put("shared", "a", body("2"), version))
    with pytest.raises(Stale):
        await one.commit(Put("shared", "a", body("3"), version))
    await one.close()
    await two.close()


async def test_a_record_that_is_too_large_is_refused(shared: Etcd, certificates: CertificateFiles):
    store = EtcdStore.open(shared.address, certificates)
    with pytest.raises(InvalidParameter, match="too large"):
        await store.commit(Put("config", "huge", body("x" * 2_000_000)))
    assert (await store.status()).version.startswith("3.")
    await store.close()


async def test_after_the_end_nothing_can_be_asked(shared: Etcd, certificates: CertificateFiles):
    store = EtcdStore.open(shared.address, certificates)
    await store.commit(Put("a", "b", body("1")))
    await store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.get("a", "b")


async def test_one_member_of_three_may_die_at_any_time(three: Etcd):
    store = EtcdStore.open(three.address)
    version = await store.commit(Put("service", "a", body("0"), NEW))
    for number, member in enumerate(three.members, 1):
        member.kill()
        version = await store.commit(Put("service", "a", body(str(number)), version))
        assert text_of(await store.get("service", "a")) == str(number)
        three.restart(member)
    await store.close()


async def test_a_member_that_hangs_is_left_for_another(three: Etcd):
    store = EtcdStore.open(three.address, patience=30)
    await store.commit(Put("service", "a", body("1"), NEW))
    three.members[0].freeze()
    assert text_of(await store.get("service", "a")) == "1"
    await store.commit(Put("service", "a", body("2")))
    await store.close()


async def test_without_a_majority_the_reason_is_told_and_nothing_is_lost(three: Etcd):
    store = EtcdStore.open(three.address, patience=6)
    version = await store.commit(Put("service", "a", body("1"), NEW))
    for member in three.members[:2]:
        member.kill()
    with pytest.raises(StoreUnavailable, match="lost the majority"):
        await store.commit(Put("service", "a", body("2"), version))
    with pytest.raises(StoreUnavailable, match="lost the majority"):
        await store.get("service", "a")
    three.restart(*three.members[:2])
    found = await store.get("service", "a")
    assert found is not None and text_of(found) in ("1", "2"), (
        "what was refused for want of an answer may have been done"
    )
    await store.commit(Put("service", "a", body("3"), found.version))
    await store.close()


async def test_transactions_go_on_while_members_are_killed_and_none_is_done_twice(three: Etcd):
    """Each writer adds one to what it read: a transaction that is tried again and done twice would count twice."""
    store = EtcdStore.open(three.address, patience=60)
    await store.commit(Put("counter", "c", body("0"), NEW))
    done, ends = 0, asyncio.Event()

    async def count() -> None:
        nonlocal done
        while not ends.is_set():
            record = await store.get("counter", "c")
            assert record is not None
            try:
                await store.commit(Put("counter", "c", body(str(int(text_of(record)) + 1)), record.version))
            except Stale:
                continue
            done += 1

    async def kill() -> None:
        for member in three.members:
            before = done
            while done < before + 20:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(three.restart, member)
        ends.set()

    await asyncio.gather(count(), kill())
    assert text_of(await store.get("counter", "c")) == str(done)
    await store.close()
