"""Commands to systemd: on a host where it runs, on one that boots later, and below a root."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from husk.cli.install import systemd
from husk.errors import SystemFault
from husk.kernel import process
from husk.kernel.process import Completed

UNITS = ("husk.socket", "husk.service")
HERE = Path("/")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []

    async def run(command: Sequence[str], **_: Any) -> Completed:
        lines.append(" ".join([os.path.basename(command[0]), *command[1:]]))
        return Completed(1 if "broken.service" in command else 0, b"", b"")

    monkeypatch.setattr(process, "run", run)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    return lines


def test_where_it_runs(told: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systemd, "running", lambda root: True)
    systemd.enable(HERE, UNITS, start=True)
    systemd.disable(HERE, ("husk.service", "husk.socket"))
    systemd.reload(HERE)
    assert told == [
        "systemctl daemon-reload",
        "systemctl enable husk.socket husk.service",
        "systemctl stop husk.service",
        "systemctl restart husk.socket husk.service",
        "systemctl stop husk.socket husk.service",
        "systemctl disable husk.service husk.socket",
        "systemctl daemon-reload",
    ]


def test_where_it_does_not_run(told: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(systemd, "running", lambda root: False)
    systemd.enable(HERE, UNITS, start=True)
    systemd.enable(tmp_path, UNITS, start=True)
    systemd.reload(HERE)
    assert told == [
        "systemctl enable husk.socket husk.service",
        f"systemctl --root={tmp_path} enable husk.socket husk.service",
    ]


def test_what_it_refuses_is_told(told: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(SystemFault, match=r"systemctl enable broken\.service failed: status 1"):
        systemd.enable(tmp_path, ["broken.service"], start=False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(SystemFault, match="there is no systemctl here for: systemctl enable x"):
        systemd.enable(tmp_path, ["x"], start=False)


def test_a_root_is_never_what_runs(tmp_path: Path) -> None:
    assert not systemd.running(tmp_path) and not systemd.present(tmp_path)
