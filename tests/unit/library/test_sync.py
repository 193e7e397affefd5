"""`husk.connect_sync`: opened, closed, and its types."""

import gc
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from husk.errors import Unavailable
from husk.library import sync
from tests.support.fake_engine import FakeEngine

ROOT = Path(__file__).resolve().parents[3]


def test_it_is_closed_with_its_block_and_at_the_end(played: list[FakeEngine]) -> None:
    engine = sync.connect_sync("unix:///x")
    following = iter(engine.containers.get("c1").logs().lines())
    next(following)
    engine.close()
    engine.close()
    assert not any(thread.name == "husk-sync" for thread in threading.enumerate())
    with pytest.raises(Unavailable, match="the engine is closed"):
        engine.containers.list()
    del following
    gc.collect()


def test_one_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = threading.active_count()
    with pytest.raises(Unavailable):
        sync.connect_sync(f"unix://{tmp_path}/none")
    until = [thread for thread in threading.enumerate() if thread.name == "husk-sync"]
    for thread in until:
        thread.join(10)
    assert threading.active_count() == before


def test_the_committed_types_are_those_of_the_code() -> None:
    command = [sys.executable, str(ROOT / "scripts/twins"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
