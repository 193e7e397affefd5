"""Debts that could not be stored are found by the next daemon of the same store, and by no other."""

import os
from pathlib import Path

import msgspec
import pytest

from husk.errors import SystemFault
from husk.storage.state import debts as module
from husk.storage.state.debts import Debts, OwedRecord
from husk.storage.state.schema import SCHEMA

CHANGES: list[OwedRecord] = [OwedRecord("container", "a", b'{"x": 1}', SCHEMA), OwedRecord("task", "b", None, SCHEMA)]
MARK = "m"


def test_debts_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "run" / "debts"
    Debts(path, tmp_path / "state.db").write(CHANGES, MARK)
    assert Debts(path, tmp_path / "state.db").read(MARK) == CHANGES
    assert path.stat().st_mode & 0o777 == 0o600
    Debts(path, tmp_path / "state.db").write([], MARK)
    assert not path.exists() and Debts(path, tmp_path / "state.db").read(MARK) == []


def test_debts_of_another_store_are_nobodys_here(tmp_path: Path) -> None:
    Debts(tmp_path / "debts", tmp_path / "one.db").write(CHANGES, MARK)
    assert Debts(tmp_path / "debts", tmp_path / "other.db").read(MARK) == []


@pytest.mark.parametrize("left", [b"", b"{", b'{"store": 1}', b"\xff"])
def test_a_file_that_cannot_be_read_is_told_and_keeps_nobody_from_starting(
    tmp_path: Path, left: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "debts").write_bytes(left)
    assert Debts(tmp_path / "debts", tmp_path / "state.db").read(MARK) == []
    assert "cannot be read" in caplog.text


def test_where_there_is_no_room_either_they_are_in_memory_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    debts = Debts(tmp_path / "file" / "debts", tmp_path / "state.db")
    assert not debts.write(CHANGES, MARK)
    debts.write([], MARK)
    (tmp_path / "debts").mkdir()
    assert not Debts(tmp_path / "debts", tmp_path / "state.db").write(CHANGES, MARK)
    assert caplog.text.count("cannot be written") == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["debts", "file"], "nothing half written stays"
    nowhere = Debts(None, tmp_path / "state.db")
    nowhere.write(CHANGES, MARK)
    assert nowhere.read(MARK) == []


def test_a_page_that_follows_another_mark_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "debts"
    Debts(path, tmp_path / "state.db").write(CHANGES, "before")
    assert Debts(path, tmp_path / "state.db").read("after") == []
    assert not path.exists()


def test_a_page_of_the_release_before_is_read_by_a_store_without_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "debts"
    page = {"store": str(tmp_path / "state.db"), "changes": [["container", "a", b"{}"], ["task", "b", None]]}
    path.write_bytes(msgspec.json.encode(page))
    found = Debts(path, tmp_path / "state.db").read("")
    assert found == [OwedRecord("container", "a", b"{}", 2), OwedRecord("task", "b", None, 2)]


def test_a_page_of_a_later_version_is_refused_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "debts"
    Debts(path, tmp_path / "state.db").write([*CHANGES, OwedRecord("k", "late", b"", SCHEMA + 1)], MARK)
    before = path.read_bytes()
    with pytest.raises(SystemFault, match=f"later version of Husk .schema {SCHEMA + 1}; .* has 3 changes"):
        Debts(path, tmp_path / "state.db").read(MARK)
    assert path.read_bytes() == before


@pytest.mark.parametrize("what", ["pipe", "link", "directory", "loop", "huge"])
def test_something_else_in_the_place_of_the_page_is_told(
    tmp_path: Path, what: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, debts = tmp_path / "debts", Debts(tmp_path / "debts", tmp_path / "state.db")
    Debts(tmp_path / "other", tmp_path / "state.db").write(CHANGES, MARK)
    match what:
        case "pipe":
            os.mkfifo(path)
        case "link":
            path.symlink_to("other")
        case "directory":
            path.mkdir()
        case "loop":
            path.symlink_to("debts")
        case "huge":
            monkeypatch.setattr(module, "LARGEST", 10)
            path.write_bytes((tmp_path / "other").read_bytes())
            assert not debts.write(CHANGES, MARK)
    assert debts.read(MARK) == []
    assert "cannot be read" in caplog.text


def test_what_lies_in_the_place_of_the_page_is_not_written_into(tmp_path: Path) -> None:
    path, debts = tmp_path / "debts", Debts(tmp_path / "debts", tmp_path / "state.db")
    (tmp_path / "target").write_text("mine")
    path.symlink_to("target")
    (tmp_path / "debts.new").symlink_to("target")
    assert debts.write(CHANGES, MARK) and debts.read(MARK) == CHANGES
    path.unlink()
    os.mkfifo(path)
    os.mkfifo(tmp_path / "debts.new")
    assert debts.write(CHANGES, MARK) and debts.read(MARK) == CHANGES
    assert (tmp_path / "target").read_text() == "mine"
