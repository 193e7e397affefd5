"""/etc/hosts and its like are the container's own to spoil: nothing that it does to them reaches the host."""

import fcntl
import os
from pathlib import Path

import pytest

from husk.runtime.assembly.network_files import begins_with, overwrite, read_ours, replace


def test_a_start_makes_it_anew_whatever_has_become_of_it(tmp_path: Path) -> None:
    hosts, elsewhere = tmp_path / "hosts", tmp_path / "elsewhere"
    elsewhere.write_text("of the host")
    hosts.symlink_to(elsewhere)
    (tmp_path / ".hosts.new").write_text("left of a crash")
    replace(hosts, "127.0.0.1 localhost\n")
    assert hosts.read_text() == "127.0.0.1 localhost\n" and not hosts.is_symlink()
    assert elsewhere.read_text() == "of the host"
    assert hosts.stat().st_mode & 0o777 == 0o644 and sorted(os.listdir(tmp_path)) == ["elsewhere", "hosts"]


def test_a_change_keeps_the_file_that_is_mounted(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("a long old text\n")
    before = hosts.stat().st_ino
    assert overwrite(hosts, "new\n")
    assert (hosts.read_text(), hosts.stat().st_ino) == ("new\n", before)


@pytest.mark.parametrize("kind", ["link", "pipe", "directory", "nothing"])
def test_what_has_its_name_and_is_no_file_is_left_alone(tmp_path: Path, kind: str) -> None:
    hosts, elsewhere = tmp_path / "hosts", tmp_path / "elsewhere"
    elsewhere.write_text("of the host")
    if kind == "link":
        hosts.symlink_to(elsewhere)
    elif kind == "pipe":
        os.mkfifo(hosts)
    elif kind == "directory":
        hosts.mkdir()
    assert overwrite(hosts, "new\n") and begins_with(hosts, 10) is None
    assert elsewhere.read_text() == "of the host"


def test_nobody_waits_for_a_lease(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("mine\n")
    with hosts.open("r+") as held:
        fcntl.fcntl(held, fcntl.F_SETSIG, 23)  # SIGURG, which is ignored
        fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        assert overwrite(hosts, "new\n") is False
        with pytest.raises(BlockingIOError):
            begins_with(hosts, 10)
    assert hosts.read_text() == "mine\n"


def test_no_more_is_read_than_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_bytes(b"\xff" + b"x" * 10_000)
    found = begins_with(tmp_path / "hosts", 100)
    assert found is not None and len(found) == 100 and found.encode(errors="surrogateescape")[0] == 0xFF


def test_a_file_of_ours_may_be_missing(tmp_path: Path) -> None:
    (tmp_path / "resolv.conf").write_bytes(b"nameserver \xff\n")
    assert read_ours(tmp_path / "resolv.conf") == "nameserver \ufffd\n"
    assert read_ours(tmp_path / "nothing") == ""
