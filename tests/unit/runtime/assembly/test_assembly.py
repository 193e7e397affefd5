"""Parts of a container that are deleted in no time, and those left to work that takes its time."""

import os
from pathlib import Path

import pytest

from husk.config import Config
from husk.runtime.assembly.assembly import Assembly
from husk.runtime.assembly.paths import Paths


@pytest.fixture
def assembly(tmp_path: Path) -> Assembly:
    assembly = Assembly(Paths(Config(data_root=tmp_path / "data", exec_root=tmp_path / "run")))
    assembly.root("c1").create()
    (assembly.paths.directory("c1") / "hosts").write_text("127.0.0.1 localhost\n")
    return assembly


def test_one_that_has_written_nothing_is_gone_at_once(assembly: Assembly) -> None:
    assert assembly.discard_little("c1")
    assert not assembly.paths.directory("c1").exists()


def test_one_that_has_written_something_is_left(assembly: Assembly) -> None:
    (assembly.root("c1").upper / "file").touch()
    assert not assembly.discard_little("c1")
    assert (assembly.paths.directory("c1") / "hosts").exists()


def test_what_a_container_has_written_is_little_or_not(assembly: Assembly) -> None:
    assert not assembly.holds_little("c1")
    log = assembly.paths.log("c1")
    log.touch()
    assert assembly.holds_little("c1")
    with log.open("wb") as file:
        file.truncate(1 << 30)
    assert not assembly.holds_little("c1")
    os.truncate(log, 0)
    (assembly.root("c1").upper / "file").touch()
    assert not assembly.holds_little("c1") and not assembly.holds_little("c2")


def test_one_that_is_not_there_is_left_to_who_tells_what_is_wrong(assembly: Assembly) -> None:
    assert not assembly.discard_little("c2")
    assembly.discard("c2")


def test_what_the_kernel_leaves_of_a_volatile_mount_goes_without_being_moved(
    assembly: Assembly, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = assembly.root("c1").work / "work" / "incompat" / "volatile"
    mark.mkdir(parents=True)
    (mark / "dirty").touch()

    def move(*places: object, **directories: object) -> None:
        raise AssertionError("nothing has to be moved")

    monkeypatch.setattr(os, "rename", move)
    assert assembly.discard_little("c1")
    assert not assembly.paths.directory("c1").exists()
