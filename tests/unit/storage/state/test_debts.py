"""What could not be stored is found by the next daemon of the same store, and by no other."""

from pathlib import Path

import pytest

from husk.storage.state.debts import Debts, Document

CHANGES: list[Document] = [("container", "a", b'{"x": 1}'), ("task", "b", None)]


def test_debts_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "run" / "debts"
    Debts(path, tmp_path / "state.db").write(CHANGES)
    assert Debts(path, tmp_path / "state.db").read() == CHANGES
    assert path.stat().st_mode & 0o777 == 0o600
    Debts(path, tmp_path / "state.db").write([])
    assert not path.exists() and Debts(path, tmp_path / "state.db").read() == []


def test_debts_of_another_store_are_nobodys_here(tmp_path: Path) -> None:
    Debts(tmp_path / "debts", tmp_path / "one.db").write(CHANGES)
    assert Debts(tmp_path / "debts", tmp_path / "other.db").read() == []


@pytest.mark.parametrize("left", [b"", b"{", b'{"store": 1}', b"\xff"])
def test_a_file_that_cannot_be_read_is_told_and_keeps_nobody_from_starting(
    tmp_path: Path, left: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "debts").write_bytes(left)
    assert Debts(tmp_path / "debts", tmp_path / "state.db").read() == []
    assert "cannot be read" in caplog.text


def test_where_there_is_no_room_either_they_are_in_memory_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    debts = Debts(tmp_path / "file" / "debts", tmp_path / "state.db")
    debts.write(CHANGES)
    debts.write([])
    (tmp_path / "debts").mkdir()
    Debts(tmp_path / "debts", tmp_path / "state.db").write(CHANGES)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["debts", "file"], "nothing half written stays"
    nowhere = Debts(None, tmp_path / "state.db")
    nowhere.write(CHANGES)
    assert nowhere.read() == []
