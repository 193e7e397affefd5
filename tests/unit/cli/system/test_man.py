import shutil
import subprocess

import pytest


def test_every_command_is_in_it(typed):
    page = typed("man").out
    for section in ("NAME", "SYNOPSIS", "OPTIONS", "COMMANDS", "ENVIRONMENT", "EXIT STATUS"):
        assert f".SH {section}" in page
    for command in ("run", "ps", "build", "serve", "top"):
        assert f".SS husk {command}" in page
    assert ".B \\-e, \\-\\-env LIST" in page
    assert "dial" not in page and "husk container" not in page


@pytest.mark.skipif(shutil.which("man") is None, reason="no man here")
def test_man_can_read_it(typed):
    done = subprocess.run(["man", "--warnings", "-l", "-"], input=typed("man").out, capture_output=True, text=True)
    assert "husk run" in done.stdout


def test_completions(typed):
    for shell in ("bash", "zsh", "fish"):
        assert "_HUSK_COMPLETE" in typed("completion", shell).out
    assert typed("completion", "tcsh").code == 125
