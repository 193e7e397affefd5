"""Records of the cluster: written with versions, found again, looked up as Docker does."""

from pathlib import Path

import pytest

from husk.engine.services.model import ClusterObject, Service, ServiceSpec
from husk.engine.services.store import EmbeddedStore, resolve
from husk.errors import InvalidParameter, NotFound
from husk.storage.state.store import StateStore


def service(id: str) -> Service:
    return Service(id=id, version=0, created_at="", updated_at="", spec=ServiceSpec(name=f"name-{id}"))


def secret(id: str) -> ClusterObject:
    return ClusterObject(
        id=id, kind="secret", version=0, created_at="", updated_at="", name=id, labels={}, sealed=b"\x00\xff"
    )


async def test_what_is_saved_is_there_after_a_restart(tmp_path: Path):
    state = StateStore.open(tmp_path / "state.db")
    store = EmbeddedStore(state)
    await store.save(service("a"), service("b"), secret("k"))
    await store.delete(store.services["b"])
    state.close()
    again = StateStore.open(tmp_path / "state.db")
    reloaded = EmbeddedStore(again)
    assert set(reloaded.services) == {"a"} and reloaded.secrets["k"].sealed == b"\x00\xff"
    assert not reloaded.configs
    assert reloaded.next_version() > max(reloaded.services["a"].version, reloaded.secrets["k"].version)
    again.close()


async def test_each_write_has_a_version_of_its_own(tmp_path: Path):
    state = StateStore.open(tmp_path / "state.db")
    store = EmbeddedStore(state)
    one, two = service("a"), service("b")
    await store.save(one, two)
    before = one.version
    assert before != two.version
    await store.save(one)
    assert one.version > max(before, two.version)
    state.close()


def test_lookups():
    records = {"abc1": 1, "abd2": 2, "web": 3}
    names = {"web": "abc1", "abd": "web"}
    assert resolve(records, names, "abc1", "thing") == 1
    assert resolve(records, names, "web", "thing") == 3, "an id counts more than a name"
    assert resolve(records, names, "abd", "thing") == 3, "a name counts more than the beginning of an id"
    assert resolve(records, names, "abc", "thing") == 1
    with pytest.raises(InvalidParameter, match="ambiguous"):
        resolve(records, names, "ab", "thing")
    for nothing in ("", "x"):
        with pytest.raises(NotFound, match="not found"):
            resolve(records, names, nothing, "thing")
