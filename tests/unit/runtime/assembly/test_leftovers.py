"""Leftovers that belong to nobody any more."""

import os
import subprocess
import threading
from pathlib import Path

import pytest

from husk.config import Config
from husk.runtime.assembly import cgroup
from husk.runtime.assembly.leftovers import Leftovers, discard_former
from husk.runtime.assembly.paths import Paths


@pytest.fixture
def cleared(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    found: list[tuple[str, bool]] = []
    monkeypatch.setattr(cgroup, "clear", lambda path, *, named: found.append((path, named)))
    return found


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ('{"linux": {"cgroupsPath": "OWN/abc"}}', ("OWN/abc", False)),
        ('{"linux": {"cgroupsPath": "/theirs/abc"}}', ("/theirs/abc", True)),
        ('{"linux": {"cgroupsPath": "/theirs"}}', None),
        ("{}", None),
        ("half of a fi", None),
    ],
)
def test_the_control_group_that_a_bundle_names(
    tmp_path: Path, cleared: list[tuple[str, bool]], config: str, expected: tuple[str, bool] | None
) -> None:
    settings = Config(data_root=tmp_path / "data", exec_root=tmp_path / "run")
    paths = Paths(settings)
    paths.bundle("abc").mkdir(parents=True)
    own = settings.cgroup_parent
    (paths.bundle("abc") / "config.json").write_text(config.replace("OWN", own))
    Leftovers(paths, lambda path, why: None).clear_cgroup("abc")
    assert cleared == ([(expected[0].replace("OWN", own), expected[1])] if expected else [])


def test_a_bundle_without_a_configuration(tmp_path: Path, cleared: list[tuple[str, bool]]) -> None:
    paths = Paths(Config(data_root=tmp_path / "data", exec_root=tmp_path / "run"))
    Leftovers(paths, lambda path, why: None).clear_cgroup("abc")
    assert cleared == []


def test_a_runtime_waited_for_its_configuration_at_a_pipe(tmp_path: Path, cleared: list[tuple[str, bool]]) -> None:
    paths = Paths(Config(data_root=tmp_path / "data", exec_root=tmp_path / "run"))
    paths.bundle("abc").mkdir(parents=True)
    os.mkfifo(paths.bundle("abc") / "config.json")
    Leftovers(paths, lambda path, why: None).clear_cgroup("abc")
    assert cleared == []


def test_a_copy_of_conmon_that_a_former_version_has_kept_goes(tmp_path: Path) -> None:
    discard_former(tmp_path)
    (tmp_path / "monitor").mkdir()
    (tmp_path / "monitor" / "conmon").touch()
    (tmp_path / "blobs").mkdir()
    discard_former(tmp_path)
    assert os.listdir(tmp_path) == ["blobs"]


def test_what_still_makes_a_container_is_killed(tmp_path: Path) -> None:
    paths = Paths(Config(data_root=tmp_path / "data", exec_root=tmp_path / "run"))
    makers = {name: subprocess.Popen(["sh", "-c", "cat; :", "sh", str(paths.bundle(name))], stdin=subprocess.PIPE)
              for name in ("mine", "other")}  # fmt: skip
    try:
        reaping = threading.Thread(target=makers["mine"].wait)
        reaping.start()
        Leftovers(paths, lambda path, why: None).end_starts({"mine", "unknown"})
        reaping.join(20)
        assert makers["mine"].returncode == -9 and makers["other"].poll() is None
    finally:
        for maker in makers.values():
            maker.kill()
            maker.communicate()
