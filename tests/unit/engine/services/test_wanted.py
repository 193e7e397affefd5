"""Services are opened with the daemon only where something is left of a swarm."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from husk.config import Config
from husk.engine.migrations import STEPS
from husk.engine.services.wanted import KINDS, wanted
from husk.storage.state.store import Change, StateStore


@pytest.fixture
def config(tmp_path: Path) -> Config:
    config = Config(data_root=tmp_path / "data", exec_root=tmp_path / "exec")
    config.data_root.mkdir()
    config.exec_root.mkdir()
    return config


def networks(*scopes: str) -> Any:
    return SimpleNamespace(listing=lambda: [SimpleNamespace(scope=scope) for scope in scopes])


def opened(config: Config) -> StateStore:
    return StateStore.open(config.data_root / "state.db", config.exec_root / "owed", STEPS)


async def test_nothing_of_a_swarm_wants_nothing(config: Config) -> None:
    state = opened(config)
    assert not await wanted(config, state, networks("local"))
    await state.add(Change("container", "a", b"{}"))
    assert not await wanted(config, state, networks())
    state.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_any_record_wants_them_readable_or_not(config: Config, kind: str) -> None:
    state = opened(config)
    await state.add(Change(kind, "a", b"no json"))
    assert await wanted(config, state, networks())
    state.close()


async def test_a_network_a_key_and_files_of_tasks_want_them(config: Config) -> None:
    state = opened(config)
    assert await wanted(config, state, networks("local", "swarm"))
    (config.data_root / "swarm.lock").touch()
    assert await wanted(config, state, networks())
    (config.data_root / "swarm.lock").unlink()
    (config.exec_root / "secrets").mkdir()
    assert not await wanted(config, state, networks())
    (config.exec_root / "secrets/task").mkdir()
    assert await wanted(config, state, networks())
    state.close()


def test_a_swarm_of_one_host_loads_nothing_of_etcd() -> None:
    late = ("husk.cluster.etcd", "husk.rpc", "hpack", "google.protobuf")
    code = f"import sys, husk.engine.services.parts; print([name for name in {late!r} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert loaded.stdout.strip() == "[]"
