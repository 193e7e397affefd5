"""Programs of the host are found where `shutil.which` finds them."""

import shutil
from pathlib import Path

import pytest

from husk.runtime.process import which


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    for name, mode in (("one/tool", 0o755), ("two/tool", 0o755), ("one/text", 0o644), ("two/text", 0o755)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch(mode)
    (tmp_path / "one/directory").mkdir()
    return tmp_path


@pytest.mark.parametrize("name", ["tool", "text", "directory", "absent", "./tool"])
def test_the_first_in_the_path_that_can_be_run(programs: Path, name: str) -> None:
    path = f"{programs}/none:{programs}/one:{programs}/two"
    assert which(name, path) == shutil.which(name, path=path)


def test_a_path_is_itself(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert which(f"{programs}/one/tool") == f"{programs}/one/tool"
    assert which(f"{programs}/one/text") is None
    monkeypatch.setenv("PATH", f"{programs}/two")
    assert which("text") == f"{programs}/two/text"
