"""`husk doctor --check-store`: what is printed, what is mended, and what a daemon at work keeps it from."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from husk.cli import store
from husk.engine.checkup import Examination, Types
from husk.errors import Conflict, Forbidden, NotFound
from husk.storage.check import Problem

DAMAGE = Problem("blob sha256:1", "its bytes are others", "pull it again", fixable=True)
LEFTOVER = Problem("directory x", "a check that was killed left it", "--fix removes it", damage=False, fixable=True)


class Doctor:
    """Results of each look, in turn; and the orders to `repair`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.looks: list[list[Problem]] = []
        self.live: list[list[Problem]] = []
        self.repaired: list[list[Problem]] = []
        self.busy = False
        monkeypatch.setattr("os.geteuid", lambda: 0)
        monkeypatch.setattr(store, "claimed_data_root", self._claim)
        monkeypatch.setattr(store, "examine", self._examine)
        monkeypatch.setattr(store, "examine_live", self._examine_live)
        monkeypatch.setattr(store, "repair", self._repair)

    @contextmanager
    def _claim(self, data_root: Path) -> Iterator[None]:
        if self.busy:
            raise Conflict("a daemon uses it")
        yield

    async def _examine(self, data_root: Path, wings: Types, deep: bool) -> Examination:
        return Examination(problems=self.looks.pop(0), looked_at="1 blobs")

    async def _examine_live(self, data_root: Path, wings: Types, deep: bool) -> Examination:
        return Examination(problems=self.live.pop(0), looked_at="1 blobs")

    async def _repair(self, data_root: Path, found: Examination) -> list[str]:
        self.repaired.append(found.problems)
        return ["removed it"]


@pytest.fixture
def doctor(monkeypatch: pytest.MonkeyPatch) -> Doctor:
    return Doctor(monkeypatch)


def check(root: Path, *, fix: bool = False, quiet: bool = False) -> bool:
    return store.check(root, deep=False, fix=fix, quiet=quiet)


def test_a_sound_store(doctor: Doctor, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    doctor.looks = [[LEFTOVER]]
    assert check(tmp_path)
    assert capsys.readouterr().out.splitlines()[-1] == "The store is sound: 1 blobs."


def test_damage_is_told_with_its_cure_and_nothing_is_touched(
    doctor: Doctor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    doctor.looks = [[DAMAGE, LEFTOVER]]
    assert not check(tmp_path)
    out = capsys.readouterr().out
    assert "FAIL  blob sha256:1: its bytes are others. Cure: pull it again" in out and "warn  directory x" in out
    assert "The store is damaged" in out and doctor.repaired == []


def test_quiet_tells_damage_alone(doctor: Doctor, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    doctor.looks = [[DAMAGE, LEFTOVER]]
    assert not check(tmp_path, quiet=True)
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["FAIL"]


def test_fix_mends_and_looks_again(doctor: Doctor, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    doctor.looks = [[DAMAGE], []]
    assert check(tmp_path, fix=True)
    said = capsys.readouterr()
    assert doctor.repaired == [[DAMAGE]] and "husk doctor: removed it" in said.err and "The store is sound" in said.out


def test_what_cannot_be_mended_is_left(doctor: Doctor, tmp_path: Path) -> None:
    doctor.looks = [[Problem("volume v", "its directory is missing", "docker volume rm v")]]
    assert not check(tmp_path, fix=True)
    assert doctor.repaired == []


def test_beside_a_daemon_there_is_only_a_look(
    doctor: Doctor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    doctor.busy, doctor.live = True, [[]]
    assert check(tmp_path)
    assert "A daemon uses this store" in capsys.readouterr().out
    with pytest.raises(Conflict, match="nothing is mended while a daemon works: a daemon uses it"):
        check(tmp_path, fix=True)


def test_who_may_not_and_what_is_not_there(doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotFound, match="there is no directory"):
        check(tmp_path / "nowhere")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(Forbidden):
        check(tmp_path)
