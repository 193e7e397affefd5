"""A runtime's root tells which program it is, and what that told as long as it is the same file."""

from pathlib import Path

import pytest

from husk.runtime import notes


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "crun"
    path.write_bytes(b"\x7fELF and more")
    return path


def test_what_was_told_is_remembered_as_long_as_the_program_is_the_same_file(tmp_path: Path, program: Path) -> None:
    root = tmp_path / "root"
    assert notes.read(root) is None
    assert notes.write(root, str(program), ()).version == ""
    assert notes.write(root, str(program), (), "crun version 1.8").version == "crun version 1.8"
    assert notes.write(root, str(program), ("--debug",)).version == "crun version 1.8"
    found = notes.read(root)
    assert found is not None and (found.path, found.args) == (str(program), ("--debug",))
    program.write_bytes(b"\x7fELF another one")
    assert notes.write(root, str(program), ()).version == ""


def test_a_script_and_what_is_not_there_are_asked_each_time(tmp_path: Path, program: Path) -> None:
    program.write_text("#!/bin/sh\nexec /opt/crun")
    for path in (program, tmp_path / "missing"):
        notes.write(tmp_path / "root", str(path), (), "crun version 1.8")
        assert notes.write(tmp_path / "root", str(path), ()).version == ""


def test_a_note_of_an_earlier_release_and_a_torn_one_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    (tmp_path / ".program").write_text('{"path": "/bin/old", "args": ["-x"]}')
    assert notes.read(tmp_path) == notes.Note("/bin/old", ("-x",))
    (tmp_path / ".program").write_text('{"path":')
    assert notes.read(tmp_path) is None


def test_nothing_is_written_where_nothing_is_new(tmp_path: Path, program: Path) -> None:
    notes.write(tmp_path, str(program), ())
    before = (tmp_path / ".program").stat()
    notes.write(tmp_path, str(program), ())
    assert (tmp_path / ".program").stat().st_ino == before.st_ino


def test_a_program_is_known_by_the_words_in_its_file(tmp_path: Path, program: Path) -> None:
    program.write_bytes(b"\x7fELF\0run.oci.seccomp_bpf_data\0")
    assert notes.names(str(program), "run.oci.seccomp_bpf_data")
    assert not notes.names(str(program), "run.oci.other")
    assert not notes.names(str(tmp_path / "missing"), "run.oci.seccomp_bpf_data")
