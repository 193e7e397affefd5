"""Watches of a real etcd that dies, forgets and goes back."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from husk.config.etcd_address import read_address
from husk.swarm.state.etcd.channel import EtcdChannel
from husk.swarm.state.etcd.messages import COMPACT, CompactionRequest
from husk.swarm.state.etcd.store import EtcdStore
from husk.swarm.state.transactions import Delete, Put
from tests.support.cutting import Wire
from tests.support.etcd import CLIENT_PORT, Etcd
from tests.support.store_contract import body, reading
from tests.support.waiting import until_async


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[Etcd]:
    with Etcd(tmp_path / "etcd") as etcd:
        yield etcd


async def test_a_watch_goes_on_where_it_was_when_etcd_is_killed(etcd: Etcd):
    store = EtcdStore.open(etcd.address, patience=60)
    async with reading(store.watch("task")) as reader:
        await until_async(lambda: reader.told, "the beginning")
        for number in range(3):
            await reader.reached(await store.commit(Put("task", "a", body(str(number)))))
            etcd.restart(etcd.members[0])
        last = await store.commit(Put("task", "a", body("last")))
        await until_async(lambda: reader.knows(a="last"), "the last change")
        assert reader.beginnings == 1, "nothing was forgotten, so nothing is told twice"
        revisions = [news.revision for news in reader.told]
        assert revisions == sorted(set(revisions)) and revisions[-1] == last
    await store.close()


async def test_a_watch_that_was_cut_off_goes_on_or_starts_over_where_etcd_has_forgotten(etcd: Etcd):
    other = EtcdStore.open(etcd.address)
    await other.commit(Put("task", "old", body("1")), Put("task", "a", body("1")))
    async with Wire(etcd.members[0].host, CLIENT_PORT) as wire:
        store = EtcdStore.open(f"etcd://{wire.address}")
        async with reading(store.watch("task")) as reader:
            await until_async(lambda: reader.knows(old="1", a="1"), "the beginning")
            await wire.cut()
            await other.commit(Put("task", "a", body("2")))
            await other.commit(Delete("task", "old"))
            await wire.mend()
            await until_async(lambda: reader.knows(a="2"), "what happened meanwhile")
            assert [news.all for news in reader.told] == [True, False, False]
            await wire.cut()
            await other.commit(Put("task", "a", body("3")), Put("task", "b", body("3")))
            last = await other.commit(Delete("task", "b"))
            await compact(etcd, last)
            await wire.mend()
            await until_async(lambda: reader.knows(a="3"), "all there is")
            assert reader.beginnings == 2, "nobody can tell any more that there was a b"
            await other.commit(Put("task", "c", body("1")))
            await until_async(lambda: reader.knows(a="3", c="1"), "what comes after")
            assert reader.beginnings == 2
        await store.close()
    await other.close()


async def test_a_watch_from_a_revision_that_etcd_has_forgotten_starts_over(etcd: Etcd):
    store = EtcdStore.open(etcd.address)
    old = await store.commit(Put("task", "a", body("1")))
    await store.commit(Put("task", "a", body("2")))
    await compact(etcd, await store.commit(Put("task", "a", body("3"))))
    async with reading(store.watch("task", after=old)) as reader:
        await until_async(lambda: reader.knows(a="3"), "all there is")
        assert reader.beginnings == 1
    await store.close()


async def test_a_watch_starts_over_when_etcd_has_gone_back_to_a_backup(etcd: Etcd, tmp_path: Path):
    store = EtcdStore.open(etcd.address, patience=60)
    await store.commit(Put("task", "a", body("1")))
    member = etcd.members[0]
    member.kill()
    shutil.copytree(tmp_path / "etcd/m0/data", tmp_path / "backup")
    etcd.restart(member)
    async with reading(store.watch("task")) as reader:
        for number in range(2, 6):
            await store.commit(Put("task", "a", body(str(number))))
        await until_async(lambda: reader.knows(a="5"), "all changes")
        member.kill()
        shutil.rmtree(tmp_path / "etcd/m0/data")
        shutil.move(tmp_path / "backup", tmp_path / "etcd/m0/data")
        etcd.restart(member)
        await until_async(lambda: reader.knows(a="1"), "what the backup has")
        assert reader.beginnings == 2
    await store.close()


async def compact(etcd: Etcd, revision: int) -> None:
    channel = EtcdChannel(read_address(etcd.address), None)
    await channel.unary(COMPACT, CompactionRequest(revision=revision, physical=True).encode())
    await channel.close()
