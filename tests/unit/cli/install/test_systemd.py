"""Commands to systemd: on a host where it runs, on one that boots later, and below a root."""

from pathlib import Path

import pytest

from husk.cli.install import systemd
from husk.errors import SystemFault
from tests.support.programs import WrittenPrograms

UNITS = ("husk.socket", "husk.service")
HERE = Path("/")


def test_where_it_runs(programs: WrittenPrograms) -> None:
    programs.add("systemctl")
    systemd.enable(HERE, UNITS, start=True, running=True)
    systemd.disable(HERE, ("husk.service", "husk.socket"), running=True)
    systemd.reload(HERE)
    assert programs.told == [
        "systemctl daemon-reload",
        "systemctl enable husk.socket husk.service",
        "systemctl stop husk.service",
        "systemctl restart husk.socket husk.service",
        "systemctl stop husk.socket husk.service",
        "systemctl disable husk.service husk.socket",
        "systemctl daemon-reload",
    ]


def test_where_it_does_not_run(programs: WrittenPrograms, tmp_path: Path) -> None:
    programs.add("systemctl")
    systemd.enable(HERE, UNITS, start=True, running=False)
    systemd.enable(tmp_path, UNITS, start=True, running=False)
    systemd.disable(tmp_path, UNITS, running=False)
    assert programs.told == [
        "systemctl enable husk.socket husk.service",
        f"systemctl --root={tmp_path} enable husk.socket husk.service",
        f"systemctl --root={tmp_path} disable husk.socket husk.service",
    ]


def test_what_it_refuses_is_told(programs: WrittenPrograms, tmp_path: Path) -> None:
    programs.add("systemctl", script="exit 1")
    with pytest.raises(SystemFault, match=r"systemctl enable broken\.service failed: status 1"):
        systemd.enable(tmp_path, ["broken.service"], start=False, running=False)
    (programs.directory / "systemctl").unlink()
    with pytest.raises(SystemFault, match="there is no systemctl here for: systemctl enable x"):
        systemd.enable(tmp_path, ["x"], start=False, running=False)


def test_a_root_is_never_what_runs(tmp_path: Path) -> None:
    assert not systemd.running(tmp_path) and not systemd.present(tmp_path)
