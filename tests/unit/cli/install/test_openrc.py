"""A host with OpenRC and without systemd: the service, its runlevel, and what is taken back."""

import shutil
import subprocess
from pathlib import Path

import pytest

from husk.cli.install import openrc
from husk.cli.install.files import script
from husk.cli.install.record import load
from husk.errors import SystemFault
from tests.support.installing import everything
from tests.support.programs import WrittenPrograms

SCRIPT, LINK = "etc/init.d/husk", "etc/runlevels/default/husk"


@pytest.fixture
def alpine(root: Path) -> Path:
    """A root with OpenRC in it."""
    shutil.rmtree(root / "usr/lib")
    for name in ("sbin", "etc/init.d", "etc/runlevels/default"):
        (root / name).mkdir(parents=True)
    (root / "sbin/openrc-run").touch()
    return root


def test_a_script_is_written_and_in_the_runlevel_and_taken_back(typed, alpine: Path) -> None:
    before = set(everything(alpine))
    done = typed("install", "--root", str(alpine), "--program", "/opt/husk", "--prefix", "/usr")
    assert "OpenRC runs the daemon from the next boot on" in done.out
    text = (alpine / SCRIPT).read_text()
    assert text.startswith("#!/sbin/openrc-run\n") and "command=/opt/husk\n" in text
    assert "command_args='serve --group " in text
    assert (alpine / SCRIPT).stat().st_mode & 0o777 == 0o755
    assert (alpine / LINK).readlink() == Path("/etc/init.d/husk")
    assert not (alpine / "etc/systemd").exists()
    again = typed("install", "--root", str(alpine), "--program", "/opt/husk", "--prefix", "/usr")
    assert f"/{SCRIPT} is there" in again.out
    gone = typed("uninstall", "--root", str(alpine))
    assert "OpenRC no longer runs the daemon" in gone.out and f"removed /{SCRIPT}" in gone.out
    assert set(everything(alpine)) <= before and not (alpine / LINK).is_symlink()


def test_a_script_of_somebody_else_stays(typed, alpine: Path) -> None:
    (alpine / SCRIPT).write_text("#!/sbin/openrc-run\ncommand=/mine\n")
    done = typed("install", "--root", str(alpine), "--program", "/opt/husk")
    assert "left out the service: its script is not ours" in done.out
    assert not (alpine / LINK).is_symlink()
    record = load(alpine)
    assert record is not None and not record.openrc
    typed("uninstall", "--root", str(alpine))
    assert "command=/mine" in (alpine / SCRIPT).read_text()


def test_systemd_goes_first_where_there_are_both(typed, root: Path) -> None:
    (root / "sbin").mkdir()
    (root / "sbin/openrc-run").touch()
    typed("install", "--root", str(root), "--program", "/opt/husk")
    assert (root / "etc/systemd/system/husk.service").exists() and not (root / SCRIPT).exists()


def test_it_is_started_and_stopped(programs: WrittenPrograms) -> None:
    place = str(programs.directory)
    with pytest.raises(SystemFault, match="there is no rc-service here"):
        openrc.start(place)
    programs.add("rc-service")
    openrc.start(place)
    openrc.stop(place)
    assert programs.told == ["rc-service husk restart", "rc-service husk stop"]
    programs.add("rc-service", script="echo no such service >&2; exit 1")
    with pytest.raises(SystemFault, match="rc-service husk restart failed: no such service"):
        openrc.start(place)


def test_a_root_is_never_what_runs(tmp_path: Path) -> None:
    assert not openrc.running(tmp_path)


def test_the_script_is_one_for_a_shell(tmp_path: Path) -> None:
    path = tmp_path / "script"
    path.write_text(script(["/opt/it's here/python", "-m", "husk"], "docker").text)
    said = subprocess.run(
        ["sh", "-c", f'. {path}; echo "$command"; eval "set -- $command_args"; for each; do echo "$each"; done'],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert said.stdout.splitlines() == ["/opt/it's here/python", "-m", "husk", "serve", "--group", "docker"]
