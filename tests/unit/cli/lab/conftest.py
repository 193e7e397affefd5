"""A lab of which nothing is made."""

from pathlib import Path

import pytest

from husk.cli.lab import command
from husk.cli.lab.layout import Lab, planned


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Lab:
    """Its directories are the test's, and its process is nobody's."""
    monkeypatch.setattr(Lab, "run", property(lambda self: tmp_path / "runs/lab"))
    monkeypatch.setattr(Lab, "data", property(lambda self: tmp_path / "datas/lab"))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(command, "is_up", lambda lab: False)
    monkeypatch.setattr(command, "PATIENCE", 0.2)
    monkeypatch.setattr(command, "LOOK", 0.01)
    return planned("lab", 2, "10.99.0.0/24")
