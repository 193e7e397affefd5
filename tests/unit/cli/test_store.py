"""`husk doctor --check-store`: what is printed, what is mended, and what a daemon at work keeps it from."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from husk.cli.store import StoreChecks, check
from husk.engine.checkup import Examination
from husk.errors import Conflict, Forbidden, NotFound
from husk.storage.check import Problem

DAMAGE = Problem("blob sha256:1", "its bytes are others", "pull it again", fixable=True)
LEFTOVER = Problem("directory x", "a check that was killed left it", "--fix removes it", damage=False, fixable=True)


class ToldChecks(StoreChecks):
    """Results of each look, in turn; and the orders to `repair`."""

    def __init__(self) -> None:
        self.looks: list[list[Problem]] = []
        self.live: list[list[Problem]] = []
        self.repaired: list[list[Problem]] = []
        self.busy = False
        self.root = True

    def require_root(self) -> None:
        if not self.root:
            raise Forbidden("only root can read the store")

    @contextmanager
    def claimed(self, data_root: Path) -> Iterator[None]:
        if self.busy:
            raise Conflict("a daemon uses it")
        yield

    def examine(self, data_root: Path, deep: bool) -> Examination:
        return Examination(problems=self.looks.pop(0), looked_at="1 blobs")

    def examine_live(self, data_root: Path, deep: bool) -> Examination:
        return Examination(problems=self.live.pop(0), looked_at="1 blobs")

    def repair(self, data_root: Path, found: Examination) -> list[str]:
        self.repaired.append(found.problems)
        return ["removed it"]

    def check(self, root: Path, *, fix: bool = False, quiet: bool = False) -> bool:
        return check(root, deep=False, fix=fix, quiet=quiet, checks=self)


@pytest.fixture
def doctor() -> ToldChecks:
    return ToldChecks()


def test_a_sound_store(doctor: ToldChecks, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    doctor.looks = [[LEFTOVER]]
    assert doctor.check(tmp_path)
    assert capsys.readouterr().out.splitlines()[-1] == "The store is sound: 1 blobs."


def test_damage_is_told_with_its_cure_and_nothing_is_touched(
    doctor: ToldChecks, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    doctor.looks = [[DAMAGE, LEFTOVER]]
    assert not doctor.check(tmp_path)
    out = capsys.readouterr().out
    assert "FAIL  blob sha256:1: its bytes are others. Cure: pull it again" in out and "warn  directory x" in out
    assert "The store is damaged" in out and doctor.repaired == []


def test_quiet_tells_damage_alone(doctor: ToldChecks, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    doctor.looks = [[DAMAGE, LEFTOVER]]
    assert not doctor.check(tmp_path, quiet=True)
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["FAIL"]


def test_fix_mends_and_looks_again(doctor: ToldChecks, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    doctor.looks = [[DAMAGE], []]
    assert doctor.check(tmp_path, fix=True)
    said = capsys.readouterr()
    assert doctor.repaired == [[DAMAGE]] and "husk doctor: removed it" in said.err and "The store is sound" in said.out


def test_what_cannot_be_mended_is_left(doctor: ToldChecks, tmp_path: Path) -> None:
    doctor.looks = [[Problem("volume v", "its directory is missing", "docker volume rm v")]]
    assert not doctor.check(tmp_path, fix=True)
    assert doctor.repaired == []


def test_beside_a_daemon_there_is_only_a_look(
    doctor: ToldChecks, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    doctor.busy, doctor.live = True, [[]]
    assert doctor.check(tmp_path)
    assert "A daemon uses this store" in capsys.readouterr().out
    with pytest.raises(Conflict, match="nothing is mended while a daemon works: a daemon uses it"):
        doctor.check(tmp_path, fix=True)


def test_who_may_not_and_what_is_not_there(doctor: ToldChecks, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no directory"):
        doctor.check(tmp_path / "nowhere")
    doctor.root = False
    with pytest.raises(Forbidden):
        doctor.check(tmp_path)
