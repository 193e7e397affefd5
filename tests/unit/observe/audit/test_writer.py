"""Whole lines, whatever happens to the file; a full disk is told of once and breaks nothing."""

import logging
import os
import resource
import signal
import stat
from pathlib import Path

import pytest

from husk.errors import SystemFault
from husk.observe.audit.writer import AuditWriter
from tests.support.waiting import until


def test_lines_are_appended_to_a_file_for_root_alone(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    for number in range(2):
        writer = AuditWriter(path)
        writer.write(b"%d" % number)
        writer.close()
    assert path.read_bytes() == b"0\n1\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_rights_that_somebody_gave_a_file_stay(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    path.touch()
    path.chmod(0o640)
    AuditWriter(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_after_a_rotation_lines_are_in_the_new_file(tmp_path: Path) -> None:
    path, old = tmp_path / "audit", tmp_path / "audit.1"
    writer = AuditWriter(path)
    writer.write(b"before")
    until(lambda: path.read_bytes() == b"before\n", "the line is written")
    path.rename(old)
    writer.write(b"between")
    writer.reopen()
    until(path.exists, "the file is opened again")
    writer.write(b"behind")
    writer.close()
    assert (old.read_bytes(), path.read_bytes()) == (b"before\nbetween\n", b"behind\n")


def test_where_it_cannot_be_opened_again_it_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, old = tmp_path / "logs/audit", tmp_path / "old"
    path.parent.mkdir()
    writer = AuditWriter(path)
    path.parent.rename(old)
    writer.reopen()
    until(lambda: "cannot be opened again" in caplog.text, "it is told")
    writer.write(b"line")
    writer.close()
    assert (old / "audit").read_bytes() == b"line\n"


@pytest.mark.parametrize("kind", ["directory", "pipe", "nowhere"])
def test_what_is_no_file_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "audit"
    if kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path = tmp_path / "nowhere/audit"
    with pytest.raises(SystemFault, match=f"cannot open the audit log {path}: .* with --audit-log"):
        AuditWriter(path)


def test_a_full_disk_is_told_once_and_lines_stay_whole(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "audit"
    caplog.set_level(logging.WARNING)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        # As on a disk that has room for six bytes: the rest of the second line does not fit.
        resource.setrlimit(resource.RLIMIT_FSIZE, (6, limit[1]))
        writer = AuditWriter(path)
        writer.write(b"one\ntwo")
        until(lambda: "cannot be written" in caplog.text, "it is told")
        writer.write(b"lost")
        until(lambda: writer._lost == 2, "it is lost")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, handler)
    writer.write(b"four")
    writer.close()
    assert path.read_bytes() == b"one\ntw\nfour\n"
    assert caplog.text.count("cannot be written") == 1
    assert "is written again; 2 lines are missing" in caplog.text


@pytest.mark.parametrize("limits", [{"most": 0}, {"most_bytes": 0}])
def test_lines_that_wait_too_long_are_left_out(tmp_path: Path, limits: dict[str, int]) -> None:
    writer = AuditWriter(tmp_path / "audit", **limits)
    writer.write(b"line")
    writer.close()
    assert (tmp_path / "audit").read_bytes() == b""
