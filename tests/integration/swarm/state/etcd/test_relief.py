"""An etcd that is full takes changes again when it was relieved, and has lost nothing of what is there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from husk.config.etcd_address import read_address
from husk.swarm.state.etcd.channel import StoreFull
from husk.swarm.state.etcd.members import relieve
from husk.swarm.state.etcd.store import EtcdStore
from husk.swarm.state.transactions import Put
from tests.support.etcd import Etcd
from tests.support.store_contract import body, text_of

QUOTA = 4 << 20


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Etcd]:
    monkeypatch.setenv("ETCD_QUOTA_BACKEND_BYTES", str(QUOTA))
    with Etcd(tmp_path / "etcd") as etcd:
        yield etcd


async def test_a_full_etcd_is_relieved(small: Etcd) -> None:
    store, heard = EtcdStore.open(small.address), []
    store.full = lambda: heard.append("full")
    await store.commit(Put("service", "a", body("kept")))
    with pytest.raises(StoreFull, match="no room left"):
        for _ in range(100):
            await store.commit(Put("config", "large", body("x" * 300_000)))
    assert heard == ["full"]
    with pytest.raises(StoreFull):
        await store.commit(Put("service", "b", body("refused")))
    endpoints = read_address(small.address)
    assert await relieve(endpoints, None)
    await store.commit(Put("service", "b", body("taken")))
    assert [text_of(record) for record in (await store.listing("service")).records] == ["kept", "taken"]
    assert (await store.status()).db_size < QUOTA
    assert not await relieve(endpoints, None), "there is nothing to do any more"
    await store.close()
