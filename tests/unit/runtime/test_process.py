"""Processes of the host, held by a descriptor; programs are found where `shutil.which` finds them."""

import shutil
from pathlib import Path

import pytest

from husk.kernel import process
from husk.runtime.process import Process, which


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


async def test_a_process_that_is_gone_has_ended() -> None:
    child = process.spawn(["true"])
    await process.wait(child)
    gone = Process(child.pid)
    await gone.wait()
    assert gone.has_ended and not gone.signal(9)
    gone.close()


async def test_a_process_is_held_until_it_is_let_go_of() -> None:
    child = process.spawn(["sleep", "60"])
    held = Process(child.pid)
    assert not held.has_ended and held.kill()
    await held.wait()
    assert held.has_ended
    held.close()
    assert held.has_ended and not held.kill()
    child.close()
