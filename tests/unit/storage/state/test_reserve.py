"""The reserve: real room, given up at once, and not at the cost of everybody else."""

from pathlib import Path

import pytest

from husk.storage.state import reserve
from husk.storage.state.reserve import SIZE, Reserve


def test_it_takes_room_and_gives_it_back(tmp_path: Path) -> None:
    path = tmp_path / "reserve"
    kept = Reserve(path)
    assert kept.keep() and kept.keep()
    assert path.stat().st_blocks * 512 >= SIZE
    assert path.stat().st_mode & 0o777 == 0o600
    assert kept.give_up()
    assert not path.exists()
    assert not kept.give_up()


def test_it_does_not_take_the_last_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reserve, "free", lambda directory: 2 * SIZE)
    assert not Reserve(tmp_path / "reserve").keep()
    assert not (tmp_path / "reserve").exists()


def test_one_whose_maker_was_killed_before_it_was_allocated_is_made_whole(tmp_path: Path) -> None:
    path = tmp_path / "reserve"
    path.write_bytes(b"")
    assert Reserve(path).keep()
    assert path.stat().st_size == SIZE and path.stat().st_blocks * 512 >= SIZE
