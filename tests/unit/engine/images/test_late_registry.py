"""The client of registries comes when it is asked for, with the settings of that moment."""

import sys

import msgspec
import pytest

from husk.config import Config
from husk.engine.images.late_registry import LateRegistry
from husk.registry.client import RegistryClient


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """The settings that a client was told after it was made."""
    told: list[tuple[object, ...]] = []
    monkeypatch.setattr(RegistryClient, "configure", lambda self, *settings: told.append(settings))
    return told


async def test_there_is_one_client_for_all() -> None:
    late = LateRegistry(Config())
    assert late.client() is late.client()
    await late.close()


async def test_without_a_question_nothing_is_loaded_or_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "husk.registry.client")
    late = LateRegistry(Config())
    late.reload(Config())
    await late.close()
    assert "husk.registry.client" not in sys.modules


async def test_a_reload_counts_before_and_after_the_first_question(configured: list[tuple[object, ...]]) -> None:
    late = LateRegistry(Config())
    late.reload(msgspec.structs.replace(Config(), max_download_attempts=7))
    assert late.client()._attempts == 7 and configured == []
    late.reload(msgspec.structs.replace(Config(), insecure_registries=("localhost:5000",), max_download_attempts=8))
    assert configured == [(("localhost:5000",), (), 8)]
    await late.close()
