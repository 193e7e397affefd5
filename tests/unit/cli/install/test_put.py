"""`husk install` below a directory: once, again, over an older one, and beside what others have put there."""

from pathlib import Path

import pytest

from husk.cli.install.put import Putting, loose
from husk.cli.install.record import load
from husk.errors import SystemFault
from tests.support.installing import NEEDS_GROUPADD, SERVICE, SOCKET, everything


@NEEDS_GROUPADD
def test_once_more_changes_nothing(typed, root: Path) -> None:
    typed("install", "--root", str(root))
    before = everything(root)
    again = typed("install", "--root", str(root))
    assert again.code == 0 and everything(root) == before
    assert "wrote" not in again.out and "made" not in again.out


@NEEDS_GROUPADD
def test_a_new_version_replaces_what_the_old_one_wrote(typed, root: Path) -> None:
    typed("install", "--root", str(root), "--program", "/opt/old/husk")
    done = typed("install", "--root", str(root), "--program", "/opt/new/husk")
    assert f"wrote /{SERVICE}" in done.out
    assert "ExecStart=/opt/new/husk serve" in (root / SERVICE).read_text()


@NEEDS_GROUPADD
def test_what_others_wrote_stays(typed, root: Path) -> None:
    (root / SERVICE).parent.mkdir(parents=True)
    (root / SERVICE).write_text("[Service]\nExecStart=/bin/mine\n")
    done = typed("install", "--root", str(root))
    assert f"left out /{SERVICE}: there is another one" in done.out and "left out the service" in done.out
    typed("uninstall", "--root", str(root))
    assert (root / SERVICE).read_text() == "[Service]\nExecStart=/bin/mine\n"
    assert not (root / SOCKET).exists()
    assert "wrote" in typed("install", "--root", str(root), "--force").out
    assert "husk" in (root / SERVICE).read_text()


def test_without_systemd_it_says_what_is_left_out(typed, root: Path) -> None:
    (root / "usr/lib/systemd/systemd").unlink()
    done = typed("install", "--root", str(root), "--program", "/opt/husk", "--prefix", "/usr")
    assert "left out the service: there is neither systemd nor OpenRC below" in done.out
    assert "/opt/husk serve --group" in done.out
    assert not (root / "etc/systemd").exists() and (root / "usr/share/man/man1/husk.1").exists()
    record = load(root)
    assert record is not None and record.units == []
    typed("uninstall", "--root", str(root))
    assert not (root / "usr/share").exists()


def test_a_record_that_cannot_be_read_is_told(root: Path) -> None:
    (root / "etc/husk").mkdir()
    (root / "etc/husk/installed.json").write_text("{")
    with pytest.raises(SystemFault, match="which says what was installed"):
        Putting(root)


def test_programs_that_others_may_change(tmp_path: Path) -> None:
    program = tmp_path / "husk"
    program.touch()
    program.chmod(0o757)
    assert str(program) in loose(str(program))
