"""The store that the parts of a swarm are built on."""

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from husk.config import ClusterStoreConfig, Config
from husk.errors import Conflict
from husk.storage.state.store import Change, StateStore
from husk.swarm.model.node import Machine
from husk.swarm.state import open_store
from husk.swarm.state.parts import build_state, store_of
from husk.swarm.surroundings import SwarmSurroundings


def around(config: Config, state: StateStore, **parts: Any) -> SwarmSurroundings:
    """Doubles of the parts that the core has opened."""
    parts = {"containers": Mock(), "images": Mock(), "networks": Mock(), "events": Mock()} | parts
    return SwarmSurroundings(config=config, state=state, machine=Machine(hostname="a"), **parts)


class Asked(Exception):
    """With the store that was to be opened."""


def build(tmp_path: Path, state: StateStore, told: ClusterStoreConfig | None) -> None:
    build_state(around(Config(data_root=tmp_path, exec_root=tmp_path), state), store_of(state) or told)


@pytest.fixture(autouse=True)
def opened(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(config: ClusterStoreConfig, shut: str = "") -> None:
        raise Asked(config.address)

    monkeypatch.setattr(open_store, "open_store", asked)


def test_the_store_that_the_daemon_is_told_of(tmp_path: Path, state: StateStore) -> None:
    with pytest.raises(Asked, match="etcd://told"):
        build(tmp_path, state, ClusterStoreConfig("etcd://told"))


async def test_the_store_that_records_were_moved_to_counts_more(tmp_path: Path, state: StateStore) -> None:
    await state.commit(Change("membership", "self", b'{"node_id":"n","store":"etcd://moved"}'))
    await state.commit(Change("swarm", "default", b"{}"))
    for told in (None, ClusterStoreConfig("etcd://told")):
        with pytest.raises(Asked, match="etcd://moved"):
            build(tmp_path, state, told)


async def test_a_swarm_of_its_own_is_not_left_for_another_store(tmp_path: Path, state: StateStore) -> None:
    await state.commit(Change("swarm", "default", b"{}"))
    with pytest.raises(Conflict, match="docker swarm leave"):
        build(tmp_path, state, ClusterStoreConfig("etcd://told"))
    assert "default" in state.load("swarm")


def test_a_host_alone_has_its_own_store(tmp_path: Path, state: StateStore) -> None:
    made = build_state(around(Config(data_root=tmp_path, exec_root=tmp_path), state), store_of(state))
    assert made.shared is None and made.records.swarm is None and made.host is state
