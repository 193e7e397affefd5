import json
import os
from pathlib import Path

import pytest

from husk.kernel import cgroups, process
from husk.runtime.oci import OCIRuntime


async def test_deleting_what_does_not_exist_is_no_error(tmp_path: Path) -> None:
    runtime = OCIRuntime("crun", "/nonexistent/crun", (), tmp_path)
    await runtime.delete("abc")
    await runtime.delete("abc", force=True)
    assert runtime.known() == []


def _crun(root: Path, known: bool = True) -> OCIRuntime:
    return OCIRuntime("crun", "/usr/bin/crun", (), root, known_files=known)


def _status(root: Path, **fields: object) -> Path:
    directory = root / "one"
    directory.mkdir()
    (directory / "status").write_text(json.dumps({"pid": os.getpid(), "process-start-time": 1, **fields}))
    return directory


def test_one_that_has_ended_is_forgotten_without_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    removed: list[str] = []
    monkeypatch.setattr(cgroups, "remove", removed.append)
    directory = _status(tmp_path, **{"cgroup-path": "/husk/one"})
    assert _crun(tmp_path).has_ended("one") and directory.exists() and removed == []
    assert _crun(tmp_path).forget_ended("one") and not directory.exists() and removed == ["/husk/one"]
    _status(tmp_path, **{"cgroup-path": "/husk/one"})
    assert _crun(tmp_path).forget_ended("one", spared="/husk/one") and removed == ["/husk/one"]
    # Safe to repeat.
    assert _crun(tmp_path).has_ended("one") and _crun(tmp_path).forget_ended("one")


def test_it_takes_the_program_for_one_that_runs_and_for_files_that_are_not_known(tmp_path: Path) -> None:
    started = process.start_time(os.getpid())
    directory = _status(tmp_path, **{"process-start-time": started})
    assert not _crun(tmp_path).has_ended("one") and not _crun(tmp_path).forget_ended("one")
    (directory / "status").write_text(json.dumps({"pid": os.getpid(), "process-start-time": 1}))
    assert _crun(tmp_path).has_ended("one") and not _crun(tmp_path, known=False).has_ended("one")
    for text in ("", json.dumps({"pid": 1, "systemd-cgroup": True})):
        (directory / "status").write_text(text)
        assert not _crun(tmp_path).has_ended("one") and not _crun(tmp_path).forget_ended("one")
    assert directory.exists()
