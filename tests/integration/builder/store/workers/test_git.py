"""The presence of git. Its work for a build is tested with what asks for it: test_repositories."""

import subprocess

from husk.builder.store.workers.git import missing_program


def test_programs_that_are_missing_are_named(tmp_path):
    assert "install the package git" in missing_program("https://host/a.git", path=str(tmp_path))
    program = tmp_path / "git"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert missing_program("https://host/a.git", path=str(tmp_path)) == ""
    assert "install the package openssh-client" in missing_program("git@host:a.git", path=str(tmp_path))
    assert "openssh-client" in missing_program("ssh://host/a.git", path=str(tmp_path))
    assert missing_program("ext::sh -c id", path=str(tmp_path)) == ""


def test_this_host_has_git():
    assert missing_program("https://host/a.git") == ""
    assert subprocess.run(["git", "version"], capture_output=True, check=True).stdout
