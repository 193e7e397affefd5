"""The store that the parts of services are built on."""

import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from husk.config import ClusterStoreConfig, Config
from husk.errors import Conflict
from husk.storage.state.store import Change, StateStore
from husk.swarm.opening import open_swarm
from husk.swarm.state import open_store


def core(config: Config, state: StateStore, **parts: Mock) -> Any:
    """Doubles of the parts that the core has opened."""
    parts = {"containers": Mock(), "images": Mock(), "networks": Mock(), "events": Mock()} | parts
    system = SimpleNamespace(info=lambda: SimpleNamespace(hostname="a", machine="m", cpus=1, memory=0, version=""))
    return SimpleNamespace(config=config, state=state, system=system, **parts)


class Asked(Exception):
    """With the store that was to be opened."""


async def build(tmp_path: Path, state: StateStore, told: ClusterStoreConfig | None) -> None:
    config = Config(data_root=tmp_path, exec_root=tmp_path, cluster_store=told)
    async with AsyncExitStack() as stack:
        await open_swarm(stack, core(config, state))


@pytest.fixture(autouse=True)
def opened(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(config: ClusterStoreConfig, shut: str = "") -> None:
        raise Asked(config.address)

    monkeypatch.setattr(open_store, "open_store", asked)


async def test_the_store_that_the_daemon_is_told_of(tmp_path: Path, state: StateStore) -> None:
    with pytest.raises(Asked, match="etcd://told"):
        await build(tmp_path, state, ClusterStoreConfig("etcd://told"))


async def test_the_store_that_records_were_moved_to_counts_more(tmp_path: Path, state: StateStore) -> None:
    await state.commit(Change("membership", "self", b'{"node_id":"n","store":"etcd://moved"}'))
    await state.commit(Change("swarm", "default", b"{}"))
    for told in (None, ClusterStoreConfig("etcd://told")):
        with pytest.raises(Asked, match="etcd://moved"):
            await build(tmp_path, state, told)


async def test_a_swarm_of_its_own_is_not_left_for_another_store(tmp_path: Path, state: StateStore) -> None:
    await state.commit(Change("swarm", "default", b"{}"))
    with pytest.raises(Conflict, match="docker swarm leave"):
        await build(tmp_path, state, ClusterStoreConfig("etcd://told"))
    assert "default" in state.load("swarm")


@pytest.mark.parametrize("damage", ["bytes", "directory"])
async def test_a_worker_with_a_damaged_certificate_starts_and_says_so(
    tmp_path: Path, state: StateStore, damage: str
) -> None:
    await state.commit(Change("membership", "self", b'{"node_id":"n","role":"worker","managers":["192.0.2.1:2377"]}'))
    kept = tmp_path / "swarm.node"
    kept.mkdir()
    (kept / "roots.crt").write_bytes(b"damaged")
    (kept / "node.key").write_bytes(b"damaged")
    if damage == "bytes":
        (kept / "node.crt").write_bytes(b"\xff damaged")
    else:
        (kept / "node.crt").mkdir()
    config = Config(data_root=tmp_path, exec_root=tmp_path)
    async with AsyncExitStack() as stack:
        containers = Mock(listing=Mock(return_value=[]))
        networks = Mock(subnets=AsyncMock(return_value=()))
        services = await open_swarm(stack, core(config, state, containers=containers, networks=networks))
        standing = services.node_role.standing()
        assert standing is not None and standing.managers == (("", "192.0.2.1:2377"),)
        assert "this node's certificate" in standing.trouble


def test_a_swarm_of_one_host_loads_nothing_of_etcd() -> None:
    late = ("husk.swarm.state.etcd", "husk.rpc", "hpack")
    code = f"import sys, husk.swarm.opening; print([name for name in {late!r} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert loaded.stdout.strip() == "[]"
