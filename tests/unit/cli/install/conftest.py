"""A root to install into, with a systemd that only writes down what it is told."""

import os
from pathlib import Path

import pytest

from tests.support.programs import WrittenPrograms


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WrittenPrograms:
    """A directory of programs that PATH consists of."""
    made = WrittenPrograms(tmp_path / "programs")
    monkeypatch.setenv("PATH", str(made.directory))
    return made


@pytest.fixture
def systemctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WrittenPrograms:
    """A systemctl that goes before the programs of the host."""
    made = WrittenPrograms(tmp_path / "systemctl")
    made.add("systemctl")
    monkeypatch.setenv("PATH", f"{made.directory}:{os.environ['PATH']}")
    return made


@pytest.fixture
def root(tmp_path: Path, systemctl: WrittenPrograms) -> Path:
    """A root with systemd in it."""
    for name in ("etc", "usr/lib/systemd"):
        (tmp_path / "root" / name).mkdir(parents=True)
    (tmp_path / "root/usr/lib/systemd/systemd").touch()
    (tmp_path / "root/etc/group").write_text("root:x:0:\n")
    (tmp_path / "root/etc/gshadow").write_text("root:*::\n")
    return tmp_path / "root"
